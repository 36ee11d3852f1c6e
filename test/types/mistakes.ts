/** What is written by mistake in a company. The place of the error stands in «». */
export interface Mistake {
  readonly what: string;
  /** The agent that has it. Default: one without a mistake. */
  readonly agent?: string;
  /** Fields of the definition besides agents. */
  readonly company?: string;
  /** Statements before the definition. */
  readonly before?: string;
  /** Statements after it, with `troupe`. */
  readonly after?: string;
  /** Words of the error. */
  readonly words: string;
}

/** An agent `clerk` of OpenAI with a mistake. */
const clerk = (what: string, fields: string, words: string): Mistake => ({
  what,
  agent: `{ id: 'clerk', ...model, ${fields} }`,
  words,
});
const agent = (what: string, written: string, words: string): Mistake => ({ what, agent: written, words });
const company = (what: string, fields: string, words: string): Mistake => ({ what, company: fields, words });

const NO_CLARK = `Type '"clark"' is not assignable to type '"c`;
const IN_CONST = { agent: '«clerk»' };

export const MISTAKES: readonly Mistake[] = [
  clerk('a field', "«instruction»: 'Answer.'", "Did you mean to write 'instructions'?"),
  clerk('the field of tools', "«tols»: ['look']", "Did you mean to write 'tools'?"),
  clerk('the field of the role', "«rol»: 'worker'", "Did you mean to write 'role'?"),
  clerk('a field of the model', '«temprature»: 1', "Did you mean to write 'temperature'?"),
  clerk(
    'a field of another provider',
    "«thinking»: 'adaptive'",
    "'thinking' does not exist in type 'OpenAiAgent",
  ),
  agent(
    'a field of a program',
    "{ id: 'clerk', provider: 'codex', «sandbx»: 'read-only' }",
    "write 'sandbox'?",
  ),
  agent(
    'a model of a remote agent',
    "{ id: 'clerk', provider: 'a2a', url: 'http://a', «model»: 'x' }",
    "'model' does not",
  ),
  clerk('a field of the price', 'price: { «inpt»: 1, output: 2 }', "Did you mean to write 'input'?"),
  agent(
    'a field of a script',
    "{ id: 'clerk', provider: 'scripted', script: { rules: [{ «replay»: 'x' }] } }",
    "'replay' does not exist in type",
  ),
  clerk('a role', "«role»: 'boss'", `Type '"boss"' is not assignable to type`),
  clerk('a number in quotes', "«temperature»: '1'", "Type 'string' is not assignable to type 'number"),
  clerk('a price as a number', '«price»: 3', "Type 'number' is not assignable to type"),
  clerk('one tool', "«tools»: 'look'", "Type 'string' is not assignable to type 'readonly "),
  agent('a provider', "{ id: 'clerk', «provider»: 'antropic', model: 'x' }", `Did you mean '"anthropic"'?`),
  agent('no model', "«{ id: 'clerk', instructions: 'Answer.' }»", "Property 'provider' is missing in type"),
  agent('no script', "«{ id: 'clerk', provider: 'scripted' }»", "Property 'script' is missing in type"),
  agent('no id', "«{ ...model, tools: ['look'] }»", "Property 'id' is missing in type"),
  clerk('a tool', "tools: [«'lok'»]", `Did you mean '"look"'?`),
  clerk('a built-in tool', "tools: ['look', «'handof'»]", `Did you mean '"handoff"'?`),
  clerk('an MCP server', "tools: ['files/read', «'fils/*'»]", `Type '"fils/*"' is not assignable to type '`),
  clerk(
    'a tool that a server may not',
    "tools: ['web/get', «'web/put'»]",
    `Type '"web/put"' is not assignable`,
  ),
  clerk('an approval of a tool of others', "tools: ['look'], needsApproval: [«'todo'»]", `to type '"look"'`),
  agent(
    'the name of a provider',
    "{ id: 'clerk', provider: 'custom', model: 'x', «adapter»: 'parot' }",
    `Type '"parot"' is not assignable to type '"parrot"'`,
  ),
  {
    what: 'a field, in a const',
    before: "const clerk = { id: 'clerk', ...model, instruction: 'Answer.' } as const;",
    ...IN_CONST,
    words: `Property '"instruction is not a field"' is missing`,
  },
  {
    what: 'a tool, in a const',
    before: "const clerk = { id: 'clerk', ...model, tools: ['lok'] } as const;",
    ...IN_CONST,
    words: `Did you mean '"look"'?`,
  },
  {
    what: 'no model, in a const',
    before: "const clerk = { id: 'clerk', role: 'worker' } as const;",
    ...IN_CONST,
    words: "Property 'provider' is missing in type",
  },
  {
    what: 'the default, in a const',
    before: "const defaults = { respondWhenUnaddressed: 'clark' } as const;",
    company: '«defaults»',
    words: NO_CLARK,
  },
  {
    what: 'a budget, in a const',
    before: 'const budgets = { agents: { clark: { tokens: 1 } } };',
    company: '«budgets»',
    words: `Property '"clark is not an agent"' is missing`,
  },
  company('the default', "defaults: { «respondWhenUnaddressed»: 'clark' }", NO_CLARK),
  company(
    'the field of the default',
    "defaults: { «respondUnaddressed»: 'clerk' }",
    "'respondUnaddressed' does not",
  ),
  company('a field of the company', '«limit»: {}', "Did you mean to write 'limits'?"),
  company('a limit', 'limits: { «maxStep»: 3 }', "Did you mean to write 'maxSteps'?"),
  company('a route to one', "routing: { by: 'agent', «agent»: 'clark' }", NO_CLARK),
  company('a route to several', "routing: { by: 'round', agents: ['clerk', «'clark'»] }", NO_CLARK),
  company(
    'a rule of routing',
    "routing: { by: 'rules', rules: [{ matches: 'x', to: [«'clark'»] }] }",
    NO_CLARK,
  ),
  company(
    'a schedule',
    "schedules: [{ name: 's', cron: '@daily', conversation: 'c', «to»: 'clark', content: 'x' }]",
    NO_CLARK,
  ),
  company('a step', "workflows: [{ id: 'w', steps: [{ id: 's', «agent»: 'clark', brief: 'x' }] }]", NO_CLARK),
  company(
    'a field of a step',
    "workflows: [{ id: 'w', steps: [{ id: 's', agent: 'clerk', «breif»: 'x' }] }]",
    "Did you mean to write 'brief'?",
  ),
  company('a budget', 'budgets: { agents: { «clark»: { tokens: 1 } } }', "'clark' does not exist in type"),
  company('the summariser', "context: { «summariser»: 'clark' }", NO_CLARK),
  company(
    'a fragment',
    "fragments: [{ name: 'f', lifecycle: 'dynamic', agents: [«'clark'»], text: ({ agent }) => agent }]",
    NO_CLARK,
  ),
  company(
    'a tool of a template',
    "templates: [{ id: 'temp', ...model, tools: [«'lok'»] }]",
    `Did you mean '"look"'?`,
  ),
  company(
    'a template as an agent',
    "templates: [{ id: 'temp', ...model }], routing: { by: 'agent', «agent»: 'temp' }",
    `Type '"temp"' is not assignable to type '"c`,
  ),
  {
    what: 'who is addressed',
    after: "await (await createTroupe(troupe)).ask('c', { to: [«'clark'»], content: 'x' });",
    words: NO_CLARK,
  },
];

/** A company with all that names agents or tools. */
export const RIGHT: Omit<Mistake, 'what' | 'words'> = {
  agent: `{ id: 'clerk', ...model, aliases: ['scribe'], tools: ['look', 'todo', 'files/*', 'web/get'],
    needsApproval: ['look', 'files/read', 'web/*'], instructions: ({ agent }) => agent.toUpperCase() },
    { id: 'bird', provider: 'custom', model: 'x', adapter: 'parrot' }`,
  company: `templates: [{ id: 'temp', ...model, tools: ['look'] }],
    defaults: { respondWhenUnaddressed: 'scribe', afterHandoff: 'default' },
    routing: { by: 'rules', rules: [{ matches: 'x', to: ['clerk', 'temp-1'] }] },
    schedules: [{ name: 's', cron: '@daily', conversation: 'c', to: 'clerk', content: 'x' }],
    workflows: [{ id: 'w', directive: 'x', steps: [
      { id: 's', agent: 'clerk', brief: 'x', completeWhen: 'tool' }, { id: 't', agent: 'temp-2', brief: 'x' }] }],
    budgets: { tenant: { usd: 1 }, agents: { clerk: { tokens: 1 }, scribe: { usd: 1 } } },
    context: { trigger: 0.5, summariser: 'clerk' },
    fragments: [
      { name: 'f', lifecycle: 'dynamic', agents: ['clerk'], text: ({ agent }) => agent },
      { name: 'g', lifecycle: 'static', layer: 'rules', text: 'x' }],
    redact: (text) => text.trim()`,
  after: `const opened = await createTroupe({ ...troupe, limits: { maxSteps: 3 } });
    await opened.ask('c', { to: ['anybody'], content: 'x' });`,
};

/** What a program builds: its names have the type string, and are checked when the troupe is opened. */
export const BUILT: Omit<Mistake, 'what' | 'words'> = {
  before: `declare const name: string;
    declare const written: import('INDEX').TroupeInput;
    declare const caps: Record<string, { tokens: number }>;
    const defaults = { respondWhenUnaddressed: 'clark' };
    await createTroupe(written);
    await createTroupe(defineTroupe(written));
    await createTroupe({ ...written, agents: [{ id: 'clerk', ...model }] });
    await createTroupe({ agents: ['a', 'b'].map((id) => ({ id, ...model })), defaults });`,
  agent: "{ id: 'clerk', ...model, tools: [name] }",
  company: `defaults,
    routing: { by: 'round', agents: [name] },
    schedules: [{ name: 's', cron: '@daily', conversation: 'c', to: name, content: 'x' }],
    workflows: [{ id: 'w', steps: [{ id: 's', agent: name, brief: 'x' }] }],
    budgets: { agents: caps },
    context: { summariser: name },
    fragments: [{ name: 'f', lifecycle: 'dynamic', agents: [name], text: ({ agent }) => agent }]`,
};

/** Where an editor is asked for names, at «», and what it must offer. */
export const ASKED: readonly (Omit<Mistake, 'words'> & { offers: readonly string[] })[] = [
  { ...clerk('tools', "tools: ['«»']", ''), offers: ['look', 'handoff', 'web/get'] },
  { ...clerk('further tools', "tools: ['look', '«»']", ''), offers: ['look', 'handoff', 'web/get'] },
  { ...company('the default', "defaults: { respondWhenUnaddressed: '«»' }", ''), offers: ['clerk'] },
  {
    ...company('a step', "workflows: [{ id: 'w', steps: [{ id: 's', brief: 'x', agent: '«»' }] }]", ''),
    offers: ['clerk'],
  },
  {
    what: 'who is addressed',
    after: "await (await createTroupe(troupe)).ask('c', { content: 'x', to: ['«»'] });",
    offers: ['clerk'],
  },
];

const MODELS = [
  "provider: 'anthropic', model: 'claude-sonnet-5', thinking: 'adaptive'",
  "provider: 'openai-compatible', baseUrl: 'http://127.0.0.1:1', model: 'qwen'",
  "provider: 'scripted', script: { rules: [{ reply: 'Yes.' }] }",
  "...model, tools: ['look', 'handoff'], instructions: 'Look.'",
];

/** A company of `size` agents as a module, and the offset of its «. */
export function moduleOf(
  {
    agent: own = "{ id: 'clerk', ...model, tools: ['look'] }",
    company: fields = '',
    before = '',
    after = '',
  }: Partial<Mistake>,
  { size, open, index }: { size: number; open: 'createTroupe' | 'defineTroupe'; index: string },
): { text: string; at: number; length: number } {
  const others = Array.from(
    { length: size - 1 },
    (_, at) => `{ id: 'colleague${at}', role: 'worker', ${MODELS[at % MODELS.length]} },`,
  );
  const marked = `import * as z from 'zod';
import { createTroupe, defineTool, defineTroupe } from 'INDEX';
const look = defineTool({ name: 'look', description: 'Looks.', schema: z.object({}), run: () => 'seen' });
const model = { provider: 'openai', model: 'gpt-5-mini' } as const;
declare const parrot: () => never;
${before}
export const troupe = ${after === '' ? open : 'defineTroupe'}({
  agents: [
    ${others.join('\n    ')}
    ${own},
  ],
  tools: [look],
  providers: { parrot },
  mcpServers: { files: { command: 'files' }, web: { url: 'http://127.0.0.1:1', tools: ['get'] } },
  ${fields}
});
${after}
export { createTroupe, defineTroupe };
`.replaceAll('INDEX', index);
  const at = marked.indexOf('«');
  return { text: marked.replace(/[«»]/g, ''), at, length: marked.indexOf('»') - at - 1 };
}
