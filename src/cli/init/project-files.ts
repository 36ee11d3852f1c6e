import { ANTHROPIC, installCommand, OPENAI } from '../../base/optional-packages.ts';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { TroupeError } from '../../base/errors.ts';
import type { TroupeInput } from '../../library/config/agents-file.ts';
import type { ScriptRuleInput } from '../../providers/script.ts';

export const LANGUAGES = ['ts', 'json'] as const;
export type Language = (typeof LANGUAGES)[number];

export interface Choice {
  template: TemplateName;
  lang: Language;
}

/** The files of a new project by name, without its package.json. */
export function projectFiles({ template, lang }: Choice): Record<string, string> {
  const { rules } = TEMPLATE[template];
  const code = lang === 'ts' ? 'ts' : 'js';
  return {
    [`agents.${lang}`]: lang === 'ts' ? agentsModule(template) : agentsJson(template),
    'script.json': json({ rules }),
    [`agents.test.${code}`]: testFile({ template, lang }),
    [`start.${code}`]: startFile({ template, lang }),
    ...(lang === 'ts' && { 'tsconfig.json': json(TSCONFIG) }),
    '.env.example': ENV_EXAMPLE,
    '.gitignore': 'node_modules/\n.troupe/\n.env\n',
  };
}

/** The parts that package.json must have. `version` is Troupe's. */
export function packageParts(lang: Language, version: string): PackageParts {
  const code = lang === 'ts' ? 'ts' : 'js';
  return {
    type: 'module',
    scripts: {
      dev: `troupe dev agents.${lang}`,
      start: `node --env-file-if-exists=.env start.${code}`,
      test: 'node --test',
      ...(lang === 'ts' && { types: 'tsc' }),
    },
    dependencies: { troupe: `^${version}` },
    ...(lang === 'ts' && { devDependencies: { '@types/node': '^24.0.0', typescript: '>=5.9' } }),
  };
}

interface PackageParts {
  type: 'module';
  scripts: Record<string, string>;
  dependencies: Record<string, string>;
  devDependencies?: Record<string, string>;
}

const SCHEMA = './node_modules/troupe/dist/agents.schema.json';

const TSCONFIG = {
  compilerOptions: {
    target: 'es2024',
    module: 'nodenext',
    types: ['node'],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
  },
};

const ENV_EXAMPLE = `# Copy this file to .env, which git ignores. \`troupe dev\` and \`npm start\` read it.
# For models of Anthropic also: ${installCommand(ANTHROPIC)}
ANTHROPIC_API_KEY=
# For those of OpenAI, and of every server with its API: ${installCommand(OPENAI)}
`;

function agentsModule(template: TemplateName): string {
  const { agents, ...rest } = TEMPLATE[template].company;
  const entries = agents.map((agent) => `    {\n${fieldsOf(agent, 6)}      ...model,\n    },\n`);
  return `import { defineTroupe } from 'troupe';

// Without a key, agents answer from script.json, so everything runs without an account. With one: ${installCommand(ANTHROPIC)}
const model = process.env['ANTHROPIC_API_KEY']
  ? { provider: 'anthropic' as const, model: 'claude-sonnet-5' }
  : { provider: 'scripted' as const, script: 'script.json' };

export const troupe = defineTroupe({
  agents: [
${entries.join('')}  ],
${fieldsOf(rest, 2)}});
`;
}

/** One field on each line. The values contain no quotes, and no nested objects that need lines of their own. */
function fieldsOf(fields: object, indent: number): string {
  return Object.entries(fields)
    .map(([name, value]) => `${' '.repeat(indent)}${name}: ${literal(value)},\n`)
    .join('');
}

function literal(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`;
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`;
  const fields = Object.entries(value as object).map(([name, each]) => `${name}: ${literal(each)}`);
  return `{ ${fields.join(', ')} }`;
}

function agentsJson(template: TemplateName): string {
  const { agents, ...rest } = TEMPLATE[template].company;
  const model = { provider: 'scripted', script: 'script.json' };
  return json({ $schema: SCHEMA, agents: agents.map((agent) => ({ ...agent, ...model })), ...rest });
}

function startFile({ template, lang }: Choice): string {
  return `// npm start -- "Your question"
${companyImports(lang, ['createTroupe'])}
const question = process.argv.slice(2).join(' ') || '${TEMPLATE[template].question}';
const troupe = await createTroupe(company, { data: '.troupe' });
try {
  const { replies, failures } = await troupe.ask('start', question);
  for (const { author, body } of replies) console.log(\`\${author.name}: \${body.content}\`);
  for (const { agent, message } of failures) console.error(\`\${agent} failed: \${message}\`);
} finally {
  await troupe.close();
}
`;
}

function testFile({ template, lang }: Choice): string {
  const { testName, test } = TEMPLATE[template];
  const scripted = lang === 'ts' ? `'scripted' as const` : `'scripted'`;
  return `import assert from 'node:assert/strict';
import { test } from 'node:test';
${companyImports(lang, ['createTroupe'])}
// The same agents, answered by script.json: no key, no network, and the same answers every time.
const model = { provider: ${scripted}, script: 'script.json' };
const agents = company.agents.map((agent) => ({ ...agent, ...model }));

test('${testName}', async () => {
  const troupe = await createTroupe({ ...company, agents }, { data: ':memory:' });
  try {
${test.map((line) => `    ${line}\n`).join('')}  } finally {
    await troupe.close();
  }
});
`;
}

function companyImports(lang: Language, names: readonly string[]): string {
  if (lang === 'ts')
    return `import { ${names.join(', ')} } from 'troupe';\nimport { troupe as company } from './agents.ts';\n`;
  return `import { ${[...names, 'loadAgentsFile'].join(', ')} } from 'troupe';\n\nconst company = await loadAgentsFile('agents.json');\n`;
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

type Manifest = Record<string, unknown>;

/** The package.json that would be written, and the field whose value would be replaced, if any. */
interface MergedPackage {
  text: string;
  conflict: string | null;
}

/** Adds what is missing to the package.json at `path`, or makes one. Throws `config_invalid` if it is not an object in JSON. */
export async function mergePackage(path: string, dir: string, parts: PackageParts): Promise<MergedPackage> {
  const given = await readManifest(path);
  const { type, ...sections } = parts;
  const start: Manifest = given ?? { name: nameFrom(dir), private: true, version: '0.0.0' };
  const merged: Manifest = { ...start, type };
  for (const [section, entries] of Object.entries(sections))
    merged[section] = { ...entries, ...(merged[section] as object | undefined) };
  const isNew = given === null || isPlaceholderTest(given);
  if (isNew) (merged['scripts'] as Manifest)['test'] = parts.scripts['test'];
  const main = given?.['main'];
  const isFree = isNew && !existsSync(join(dir, typeof main === 'string' ? main : 'index.js'));
  const isOther = !isFree && given?.['type'] !== type;
  const conflict = isOther ? `package.json (its "type" must become "${type}")` : null;
  return { text: `${JSON.stringify(merged, null, 2)}\n`, conflict };
}

/** `npm init` writes a test that fails. While that is there, nobody has chosen the package's `type`. */
function isPlaceholderTest(given: Manifest): boolean {
  const scripts = given['scripts'] as Manifest | undefined;
  const test = scripts?.['test'];
  return typeof test === 'string' && test.includes('no test specified');
}

async function readManifest(path: string): Promise<Manifest | null> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'));
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Manifest;
    throw new Error('it is not an object');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return null;
    const reason = cause instanceof Error ? cause.message : String(cause);
    const message = `cannot add to ${path}: ${reason}; mend it, or choose another directory`;
    throw new TroupeError('config_invalid', message, { path }, { cause });
  }
}

/** A package name that npm accepts. */
function nameFrom(dir: string): string {
  const name = basename(dir)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]/g, '-')
    .slice(0, 100);
  return /^[a-z0-9]/.test(name) && name !== 'troupe' ? name : 'my-troupe';
}

export const TEMPLATES = ['agent', 'team'] as const;
export type TemplateName = (typeof TEMPLATES)[number];

/** A company to start from. `test` is the body of its test, which needs only the script. */
interface Template {
  label: string;
  company: { agents: AgentPart[]; defaults?: TroupeInput['defaults'] };
  rules: ScriptRuleInput[];
  /** What `start` asks if it gets no argument. */
  question: string;
  testName: string;
  test: readonly string[];
}

interface AgentPart {
  id: string;
  description?: string;
  instructions: string;
  tools?: string[];
}

export const TEMPLATE: Record<TemplateName, Template> = {
  agent: {
    label: 'one agent',
    company: {
      agents: [{ id: 'helper', instructions: 'Answer briefly and kindly.' }],
      defaults: { respondWhenUnaddressed: 'helper' },
    },
    rules: [{ reply: 'This is answer {{n}} of script.json. Give agents a model to hear more.' }],
    question: 'What can you do?',
    testName: 'the helper answers',
    test: [
      `const { text, outcome } = await troupe.ask('test', 'What can you do?');`,
      `assert.equal(outcome, 'answered');`,
      `assert.match(text, /answer 1 of script/);`,
    ],
  },
  team: {
    label: 'a team: three agents that hand over to each other',
    company: {
      agents: [
        {
          id: 'desk',
          instructions: 'Find out what the customer needs. Hand over to @billing or @technician.',
          tools: ['handoff'],
        },
        {
          id: 'billing',
          description: 'Invoices, payments and refunds.',
          instructions: 'Answer questions about invoices. Hand over to @technician what is technical.',
          tools: ['handoff'],
        },
        {
          id: 'technician',
          description: 'Devices, logins and outages.',
          instructions: 'Solve technical problems step by step. Hand over to @billing what is about money.',
          tools: ['handoff'],
        },
      ],
      defaults: { respondWhenUnaddressed: 'desk' },
    },
    rules: [
      handOver('invoice', 'billing', 'Explain the invoice'),
      { ...handOver('', 'technician', 'Solve the problem'), when: { agent: 'desk', step: 1 } },
      { when: { agent: 'billing' }, reply: 'The second line of your invoice is the setup, paid once.' },
      { when: { agent: 'technician' }, reply: 'Please restart the device, and tell me what you see.' },
      { when: { agent: 'desk' }, reply: '' },
    ],
    question: 'Why is my invoice higher than last month?',
    testName: 'a question about an invoice is handed over to billing',
    test: [
      `const { text, replies } = await troupe.ask('test', 'Why is my invoice so high?');`,
      `assert.equal(replies.at(-1)?.author.id, 'billing');`,
      `assert.match(text, /setup, paid once/);`,
    ],
  },
};

function handOver(contains: string, to: string, goal: string): Template['rules'][number] {
  const args = { to, goal, done: 'Read the question', next: 'Answer the customer', why: `It is for ${to}` };
  return {
    when: { agent: 'desk', step: 1, contains },
    reply: `I am bringing in @${to}.`,
    calls: [{ name: 'handoff', args }],
  };
}
