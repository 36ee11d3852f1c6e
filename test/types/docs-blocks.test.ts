import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { API } from 'typescript/unstable/sync';
import { expect, test } from 'vitest';

const ROOT = path.resolve(import.meta.dirname, '../..');
/** Their blocks run, in tests of their own: files of one folder. */
const RUN = ['docs/tutorial.md', 'docs/how-to/testing.md'];
/** What the pages leave out: the reader's own names and packages, and what follows from them. */
const LEFT_OUT = [
  /^Cannot find name /,
  /^No value exists in scope for the shorthand property /,
  /^Cannot find module '(?!troupe|@troupe)/,
  /implicitly has an '\w+' type/,
  /is not listed within the file list/,
];
/** What a block that leaves out fields (`…`) lacks. */
const LACKS = /is missing|are missing|missing the following/;
const PACKAGES = readdirSync(path.join(ROOT, 'packages'));
/** Names that pages use without a declaration. */
const NAMES = `import type { AgentInput, Author, Troupe, TroupeInput } from 'troupe';
declare global {
  const troupe: Troupe;
  const ana: Author & { kind: 'user' };
  const author: Author & { kind: 'user' };
  function settings(part: Partial<TroupeInput>): void;
  function agent(part: Partial<AgentInput>): void;
  const mongodb: string;
  const redis: string;
}
export {};
`;
/** Names of single pages. */
const NAMES_OF: Readonly<Record<string, string>> = {
  'docs/how-to/client.md': `import type { TroupeClient } from '@troupe/client';\ndeclare const troupe: TroupeClient;\n`,
};

interface Block {
  name: string;
  text: string;
  isPart: boolean;
}

/** The blocks of the pages for users, as modules: settings as an argument, fields that are left out as none. */
function blocks(): Block[] {
  const pages = readdirSync(path.join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((name) => path.posix.join('docs', name))
    .filter((page) => page.endsWith('.md') && !page.startsWith('docs/contributing/') && !RUN.includes(page));
  return pages.toSorted().flatMap((page) => {
    const found = [...readFileSync(path.join(ROOT, page), 'utf8').matchAll(/^```(tsx?)\n([^]*?)^```$/gm)];
    return found.map(([, kind = '', text = ''], at) => ({
      name: `${page.replaceAll(/[/.]/g, '-')}-${at + 1}.${kind}`,
      text: (text.includes('const troupe =') ? '' : (NAMES_OF[page] ?? '')) + moduleOf(text),
      isPart: text.includes('…'),
    }));
  });
}

function moduleOf(block: string): string {
  const whole = block
    .replaceAll(/,?[ \n]*…,?(?=\s*[,}])/g, '')
    .replaceAll('…, ', '')
    .replaceAll('[...]', '[]')
    .replaceAll(/^(\{ .*\})(\s*\/\/.*)?$/gm, 'agent($1);$2');
  const isSettings = /^\w+: /.test(whole);
  const isGenerator = whole.startsWith('yield ');
  const code = isSettings
    ? `settings({\n${whole}});`
    : isGenerator
      ? `export async function* pieces() {\n${whole}}`
      : whole;
  return `${code}\nexport {};\n`;
}

test('the blocks of the pages compile, but for names that a page leaves to its reader', () => {
  const folder = mkdtempSync(path.join(ROOT, 'node_modules/.troupe-blocks-'));
  const api = new API();
  try {
    const all = blocks();
    const written = [...all, { name: 'names.ts', text: NAMES, isPart: false }];
    for (const { name, text } of written) writeFileSync(path.join(folder, name), text);
    const config = path.join(folder, 'tsconfig.json');
    const at = (file: string) => [path.join(ROOT, file)];
    const paths = {
      troupe: at('src/index.ts'),
      'troupe/http': at('src/http/api/index.ts'),
      'troupe/client': at('src/http/api/client.ts'),
      'troupe/integrations': at('src/library/integrations/index.ts'),
      '@troupe/client/react': at('packages/client/src/react.ts'),
      ...Object.fromEntries(PACKAGES.map((name) => [`@troupe/${name}`, at(`packages/${name}/src/index.ts`)])),
    };
    const compilerOptions = {
      paths,
      module: 'esnext',
      moduleResolution: 'bundler',
      jsx: 'preserve',
      noPropertyAccessFromIndexSignature: false,
      lib: ['es2024', 'esnext.disposable', 'dom', 'dom.iterable'],
      noUnusedLocals: false,
      noUnusedParameters: false,
    };
    const files = written.map(({ name }) => name);
    writeFileSync(
      config,
      JSON.stringify({ extends: path.join(ROOT, 'tsconfig.json'), compilerOptions, files, include: [] }),
    );
    const project = api.updateSnapshot({ openProjects: [config] }).getProjects()[0];
    if (!project) throw new Error(`there is no project at ${config}`);
    const { program } = project;
    type Given = ReturnType<typeof program.getSemanticDiagnostics>[number];
    const flat = ({ text, messageChain = [] }: Given): string => [text, ...messageChain.map(flat)].join(' ');
    const wrong = all.flatMap(({ name, isPart }) => {
      const file = path.join(folder, name);
      const errors = [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)];
      return errors
        .map(flat)
        .filter((text) => !LEFT_OUT.some((left) => left.test(text)) && !(isPart && LACKS.test(text)))
        .map((text) => `${name}: ${text}`);
    });
    expect(all.length).toBeGreaterThan(40);
    expect(wrong).toEqual([]);
  } finally {
    api.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
