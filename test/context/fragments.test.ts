import { expect, test } from 'vitest';
import { type TroupeInput, parseTroupe } from '../../src/library/config/agents-file.ts';
import { NOTHING_STATED, stateItem } from '../../src/context/view/live.ts';
import { fragmentsOf } from '../../src/library/config/fragments.ts';
import type { AgentId } from '../../src/events/index.ts';

type Fragments = NonNullable<TroupeInput['fragments']>;

const SCRIPT = { provider: 'scripted', model: 'm', script: { rules: [{ reply: 'ok' }] } } as const;

function parse(...fragments: Fragments) {
  return parseTroupe({ agents: [{ id: 'a', ...SCRIPT }], fragments });
}

test.each<[string, object, string]>([
  ['a name that is no slug', { name: 'house style' }, 'fragments[0].name'],
  ['a name that is a number, and would be moved to the front', { name: '7' }, 'fragments[0].name'],
  ['the name of an item of the runtime', { name: 'Roster' }, 'is a name of the runtime'],
  ['an agent that is not there', { agents: ['b'] }, 'fragments[0].agents[0]: there is no agent "b"'],
  ['a layer that is not for fragments', { layer: 'persona' }, 'fragments[0].layer'],
  ['a text that is none', { text: 7 }, 'fragments[0].text'],
  ['a dynamic one with a fixed text', { lifecycle: 'dynamic', layer: undefined }, 'fragments[0].text'],
])('%s is refused', (_, wrong, stated) => {
  const fragment = { name: 'x', lifecycle: 'static', layer: 'rules', text: 't', ...wrong };
  expect(() => parse(fragment as Fragments[0])).toThrow(stated);
  expect(() => parse(fragment as Fragments[0])).toThrow(expect.objectContaining({ code: 'config_invalid' }));
});

test('a JSON file may contain static fragments with fixed texts', () => {
  const file = `{
    "agents": [{ "id": "a", "provider": "scripted", "model": "m", "script": { "rules": [{ "reply": "ok" }] } }],
    "fragments": [{ "name": "style", "lifecycle": "static", "layer": "rules", "text": "Be kind." }]
  }`;
  const { fragments = [] } = parseTroupe(JSON.parse(file));
  expect(fragmentsOf(fragments, { agent: 'a' as AgentId, role: 'peer' }).rules).toEqual(['Be kind.']);
});

test('a name is used once, by a static or a dynamic fragment', () => {
  const fixed = { name: 'x', lifecycle: 'static', layer: 'rules', text: 't' } as const;
  expect(() => parse(fixed, { name: 'x', lifecycle: 'dynamic', text: () => 't' })).toThrow(
    '"x" is used twice',
  );
});

test('fragments are ordered by name, in their layers, for the agents that they name', () => {
  const { fragments = [] } = parse(
    { name: 'b', lifecycle: 'static', layer: 'rules', text: ({ agent, role }) => `${agent} is a ${role}` },
    { name: 'a', lifecycle: 'static', layer: 'rules', text: 'first' },
    { name: 'c', lifecycle: 'static', layer: 'environment', text: 'outside' },
    { name: 'd', lifecycle: 'static', layer: 'rules', text: () => null },
    { name: 'Z', lifecycle: 'static', layer: 'rules', text: 'upper case is first' },
    { name: 'e', lifecycle: 'static', layer: 'rules', text: 'only for a', agents: ['a'] },
  );
  const given = fragmentsOf(fragments, { agent: 'a' as AgentId, role: 'peer' });
  expect(given.rules).toEqual(['upper case is first', 'first', 'a is a peer', 'only for a']);
  expect(given.environment).toEqual(['outside']);
  const other = fragmentsOf(fragments, { agent: 'b' as AgentId, role: 'peer' });
  expect(other.rules).not.toContain('only for a');
});

test.each([
  [
    'throws',
    () => {
      throw new Error('no disk');
    },
    'fragment x of @a failed: no disk',
  ],
  ['promises a text', () => Promise.resolve('later') as never, 'returned no text'],
])('a static fragment that %s is told when the company is built', (_, text, stated) => {
  const { fragments = [] } = parse({ name: 'x', lifecycle: 'static', layer: 'rules', text });
  expect(() => fragmentsOf(fragments, { agent: 'a' as AgentId, role: 'peer' })).toThrow(stated);
});

test('the end of an item is stated once, and an item that was never stated has no end', () => {
  const stated = (items: Record<string, string>) => ({ ...NOTHING_STATED, items });
  expect(stateItem('weather', 'rain', stated({}))).toEqual({ weather: 'rain' });
  expect(stateItem('weather', null, stated({}))).toEqual({});
  const ended = stateItem('weather', null, stated({ weather: 'rain' }));
  expect(ended).toEqual({ weather: 'nothing any more' });
  expect(stateItem('weather', null, stated(ended))).toEqual({});
});
