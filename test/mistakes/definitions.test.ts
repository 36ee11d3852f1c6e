import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineTool, parseTroupe } from '../../src/index.ts';

/** What a person wrote by mistake, and the words of the answer: the place, what was expected, and the mend. */
type Mistake = [what: string, input: unknown, words: string];

const bo = { id: 'bo', provider: 'scripted', script: { rules: [{ reply: 'hi' }] } };
const scripted = (more: object) => ({ agents: [{ ...bo, ...more }] });
const openai = (more: object) => ({ agents: [{ id: 'bo', provider: 'openai', model: 'gpt-5', ...more }] });
const compatible = (more: object) => ({
  agents: [{ id: 'bo', provider: 'openai-compatible', model: 'x', ...more }],
});
const troupe = (more: object) => ({ agents: [bo], ...more });
const look = () => defineTool({ name: 'look', description: '', schema: z.object({}), run: () => '' });

test.each<Mistake>([
  ['a text', 'agents.ts', '(top): is a text: give an object: { … }'],
  ['nothing', null, '(top): is null: give an object: { … }'],
  ['a list of agents', [bo], '(top): is a list: give an object: { … }'],
  ['agents by name', { agents: { bo } }, 'agents: is an object: give a list: [ … ]'],
  ['an empty list of agents', { agents: [] }, 'agents: a troupe needs at least one agent'],
  ['an agent that is null', { agents: [null] }, 'agents[0]: is null: give an object: { … }'],
  ['two agents with one id', { agents: [bo, bo] }, 'agents[1].id: "bo" is used twice'],
  [
    'a space in an id',
    scripted({ id: 'my agent' }),
    'agents[0].id: an agent id is 1 to 64 of A-Z a-z 0-9 _ -',
  ],
  [
    'a key in the file',
    openai({ apiKey: 'sk-1' }),
    'agents[0].apiKey: keys stay out of files: name the variable',
  ],
  [
    'a key as a name',
    openai({ apiKeyEnv: 'sk-proj-a' }),
    'agents[0].apiKeyEnv: this is the name of an environment',
  ],
  ['a price as a number', openai({ price: 3 }), 'agents[0].price: is 3: give an object: { … }'],
  ['half a price', openai({ price: { input: 1 } }), 'agents[0].price.output: is missing'],
  ['a number in quotes', openai({ temperature: '1' }), 'agents[0].temperature: is a text: give a number'],
  ['too much of it', compatible({ temperature: 9 }), 'agents[0].temperature: is 9: give at most 2'],
  ['too little', openai({ contextWindow: 10 }), 'agents[0].contextWindow: is 10: give at least 1024'],
  ['none of it', openai({ maxOutputTokens: 0 }), 'agents[0].maxOutputTokens: is 0: give more than 0'],
  [
    'no scheme',
    compatible({ baseUrl: 'localhost:1' }),
    'agents[0].baseUrl: give an address with http:// or https://',
  ],
  [
    'a password',
    compatible({ baseUrl: 'http://a:b@h/v1' }),
    'agents[0].baseUrl: a URL is no place for a password',
  ],
  [
    'another role',
    scripted({ role: 'boss' }),
    'agents[0].role: is "boss": give one of "manager", "worker", "peer"',
  ],
  [
    'a mistyped role',
    scripted({ role: 'managr' }),
    'agents[0].role: is "managr": give one of "manager", "worker", "peer"; did you mean "manager"?',
  ],
  ['one tool', scripted({ tools: 'handoff' }), 'agents[0].tools: is a text: give a list: [ … ]'],
  [
    'a script in a list',
    scripted({ script: [{ reply: 'hi' }] }),
    'agents[0].script: is a list: give a text, or an object: { … }',
  ],
  [
    'a function as a script',
    scripted({ script: () => 'hi' }),
    'agents[0].script: is a function: give a text, or an object: { … }',
  ],
  [
    'instructions in a list',
    scripted({ instructions: ['a'] }),
    'agents[0].instructions: give a text or a function',
  ],
  [
    'a reply that is no schema',
    scripted({ reply: 'json' }),
    'agents[0].reply: the schema cannot be used: give a schema of zod',
  ],
  [
    'a mistyped rule',
    scripted({ script: { rules: [{ replay: 'x' }] } }),
    'agents[0].script.rules[0].replay: is not a field; did you mean "reply"?',
  ],
  [
    'an unknown field of a few',
    scripted({ price: { inputs: 3, cacheRead: 0, cacheWrite: 0, output: 1 } }),
    'agents[0].price.inputs: is not a field; did you mean "input"?',
  ],
  [
    'a pubkey of another form',
    scripted({ pubkey: 'npub1' }),
    'agents[0].pubkey: a pubkey is 64 lower-case hex digits',
  ],
  [
    'an unknown default',
    troupe({ defaults: { respondWhenUnaddressed: 'b' } }),
    'defaults.respondWhenUnaddressed: there is no agent "b"; did you mean "bo"? known: bo',
  ],
  [
    'a mistyped default',
    troupe({ defaults: { respondWhenUnadressed: 'bo' } }),
    'defaults.respondWhenUnadressed: is not a field; did you mean "respondWhenUnaddressed"?',
  ],
  [
    'a mistyped limit',
    troupe({ limits: { maxStep: 3 } }),
    'limits.maxStep: is not a field; did you mean "maxSteps"?',
  ],
  [
    'a limit below its least',
    troupe({ limits: { maxSteps: -3 } }),
    'limits.maxSteps: is -3: give at least 1',
  ],
  [
    'a mistyped setting',
    troupe({ context: { prunEachTurn: true } }),
    'context.prunEachTurn: is not a field; did you mean "pruneEachTurn"?',
  ],
  [
    'another way to route',
    troupe({ routing: { by: 'model' } }),
    'routing.by: is "model": give one of "agent", "round", "capability", "rules"',
  ],
  ['a list of budgets', troupe({ budgets: [] }), 'budgets: is a list: give an object: { … }'],
  ['a workflow without steps', troupe({ workflows: [{ id: 'w' }] }), 'workflows[0].steps: is missing'],
  [
    'a server nobody knows',
    scripted({ tools: ['shell/*'] }),
    'agents[0].tools[0]: there is no MCP server "shell"; known: none',
  ],
  ['a tool made by hand', troupe({ tools: [{ name: 'x' }] }), 'tools[0]: a tool is made with defineTool'],
  ['two tools with one name', troupe({ tools: [look(), look()] }), 'tools[1].name: "look" is used twice'],
  [
    'a template with the id of an agent',
    troupe({ templates: [bo] }),
    'templates[0].id: "bo" is already the id of an agent',
  ],
  [
    'a model nobody brings',
    { agents: [{ id: 'bo', provider: 'custom', adapter: 'mine' }] },
    'agents[0].adapter: there is no "mine" in "providers"; known: none',
  ],
])('%s: the answer names the place and what to give instead', (_, input, words) => {
  expect(() => parseTroupe(input)).toThrow(words);
});

test.each<Mistake>([
  ['nothing', undefined, 'a tool: it: is missing'],
  ['no name', { name: undefined }, 'a tool: name: is missing'],
  ['a space in its name', { name: 'a b' }, 'the tool "a b": name: is 1 to 64 letters, digits, _ and -'],
  ['no description', { description: undefined }, 'the tool "look": description: is missing'],
  [
    'another name for run',
    { run: undefined, execute: () => '' },
    'the tool "look": run: give a function; execute: is not a field',
  ],
  ['a mistyped field', { needApproval: true }, 'needApproval: is not a field; did you mean "needsApproval"?'],
  ['a time in quotes', { timeoutMs: '5' }, 'timeoutMs: is a text: give a number'],
  [
    'arguments that are no object',
    { schema: z.string() },
    'the schema of tool "look": arguments are an object',
  ],
])('a tool with %s: the answer names the place and what to give instead', (_, more, words) => {
  const tool = more && { name: 'look', description: '', schema: z.object({}), run: () => '', ...more };
  expect(() => defineTool(tool as never)).toThrow(words);
});
