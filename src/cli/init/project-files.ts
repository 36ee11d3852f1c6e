import { ANTHROPIC, installCommand, OPENAI } from '../../base/optional-packages.ts';
import { TEMPLATE, type TemplateName } from './templates.ts';

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

/** What package.json must have. `version` is that of Troupe. */
export function packageParts(lang: Language, version: string): PackageParts {
  const code = lang === 'ts' ? 'ts' : 'js';
  return {
    type: 'module',
    scripts: {
      dev: `troupe dev agents.${lang}`,
      start: `node --env-file-if-exists=.env start.${code}`,
      test: 'node --test',
    },
    dependencies: { troupe: `^${version}` },
    ...(lang === 'ts' && { devDependencies: { '@types/node': '^24.0.0' } }),
  };
}

export interface PackageParts {
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

/** One field a line. The values have no quotes and no nested objects worth a line of their own. */
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
