import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type AgentProfile,
  baselineBody,
  baselineDrift,
  baselineTexts,
  textsInMode,
} from '../../src/context/index.ts';
import type { AgentId, Mode } from '../../src/events/index.ts';

const count = (text: string) => text.length;
const HANDOFF = { name: 'handoff', description: '', parameters: {} };

function agent(id: string, more: Partial<AgentProfile> = {}): AgentProfile {
  return {
    id: id as AgentId,
    name: id,
    role: 'peer',
    description: '',
    instructions: '',
    provider: 'p',
    model: 'm',
    contextWindow: 1_000,
    maxOutputTokens: 100,
    join: 'full',
    tools: [],
    ...more,
  };
}

const boss = agent('boss', { role: 'manager', instructions: 'Ship on Fridays.', tools: [HANDOFF] });
const ada = agent('ada', { role: 'worker' });
const cy = agent('cy', { role: 'worker', instructions: 'Write tests.' });
const peer = agent('peer');

function textOf(of: AgentProfile, company: AgentProfile[], name: string, mode: Mode = 'agent'): string {
  const texts = textsInMode(baselineTexts(of, company, count), mode);
  return texts.find((layer) => layer.name === name)?.text ?? '';
}

test('the prompt of a manager describes the platform and all participants', () => {
  const text = textOf(boss, [boss, ada, cy, peer], 'environment');
  expect(text).toContain('# The platform');
  expect(text).not.toContain('None of your tools');
  for (const id of ['@boss', '@ada', '@cy', '@peer']) expect(text).toContain(id);
  const bound = textOf({ ...boss, tools: [] }, [boss, ada], 'environment');
  expect(bound).toContain('None of your tools reaches another agent');
});

test('a worker sees its managers and itself, and reports to them and not to people', () => {
  const company = [peer, ada, boss, cy];
  const text = textOf(ada, company, 'environment');
  expect(text).not.toContain('# The platform');
  expect(text.match(/- @\w+/g)).toEqual(['- @ada', '- @boss']);
  const persona = textOf(ada, company, 'persona');
  expect(persona).toContain('The manager is @boss. Do not address people');
  expect(persona).toContain('do the task you were given, and nothing outside of it');
});

test('a worker that can give tasks to others sees whom', () => {
  const lead = agent('lead', { role: 'worker', tools: [{ ...HANDOFF, name: 'delegate' }] });
  const text = textOf(lead, [peer, lead, boss, cy], 'environment');
  expect(text.match(/- @\w+/g)).toEqual(['- @peer', '- @lead', '- @boss', '- @cy']);
});

test('rules are told of what can occur', () => {
  const rules = textOf(agent('bo'), [], 'rules');
  const alone = textOf(agent('bo', { isAlone: true }), [], 'rules');
  for (const only of ['tools', 'to whom', '->'])
    expect([rules.includes(only), alone.includes(only)]).toEqual([true, false]);
  expect(alone.length).toBeLessThan(rules.length / 1.8);
});

test('without a manager a worker sees everybody and reports to no one in particular', () => {
  expect(textOf(ada, [peer, ada, cy], 'environment').match(/- @\w+/g)).toEqual([
    '- @peer',
    '- @ada',
    '- @cy',
  ]);
  expect(textOf(ada, [peer, ada, cy], 'persona')).not.toContain('manager');
});

test('a worker without instructions has those of its manager', () => {
  expect(textOf(ada, [boss, ada], 'persona')).toContain('The instructions of @boss hold for you too');
  expect(textOf(ada, [boss, ada], 'persona')).toContain('Ship on Fridays.');
  expect(textOf(cy, [boss, cy], 'persona')).toContain('Write tests.');
  expect(textOf(cy, [boss, cy], 'persona')).not.toContain('Ship on Fridays.');
  expect(textOf(peer, [boss, peer], 'persona')).not.toContain('Ship on Fridays.');
});

test("chat mode omits the instructions, inherited ones too, and keeps the agent's identity", () => {
  for (const of of [boss, ada, cy]) {
    const text = textOf(of, [boss, ada, cy], 'persona', 'chat');
    expect(text).toContain(`# You are ${of.id} (@${of.id})`);
    expect(text).not.toMatch(/Fridays|Write tests/);
  }
});

const modes = fc.constantFrom<Mode>('chat', 'agent', 'run');
const instructions = fc.constantFrom('', 'Be brief.');
const roles = fc.constantFrom('manager', 'worker', 'peer' as const);

test('a baseline drifts with the mode exactly if the mode changes what the agent is sent', () => {
  fc.assert(
    fc.property(modes, modes, instructions, roles, fc.boolean(), (before, now, own, role, led) => {
      const bo = agent('bo', { instructions: own, role });
      const texts = baselineTexts(bo, led ? [boss, bo] : [bo], count);
      const frozen = baselineBody(bo, textsInMode(texts, before), { epoch: 1, reason: '' });
      const hasPersona = own !== '' || (role === 'worker' && led);
      const differs = hasPersona && (before === 'chat') !== (now === 'chat');
      expect(baselineDrift(frozen, bo, texts, now)).toBe(differs ? 'mode changed' : null);
    }),
  );
});

test('a drift names each cause: the mode beside changed tools, and new instructions separately', () => {
  const bo = agent('bo', { instructions: 'one' });
  const frozen = baselineBody(bo, textsInMode(baselineTexts(bo, [bo], count), 'agent'), {
    epoch: 1,
    reason: '',
  });
  const armed = { ...bo, tools: [HANDOFF] };
  expect(baselineDrift(frozen, armed, baselineTexts(armed, [armed], count), 'chat')).toBe(
    'mode, tools changed',
  );
  const other = { ...bo, instructions: 'two' };
  expect(baselineDrift(frozen, other, baselineTexts(other, [other], count), 'agent')).toBe('persona changed');
});

test('tools whose calls wait for a person are named, with who may approve them', () => {
  const approvals = [
    { tool: 'pay', always: true, by: ['ana', 'ben'] },
    { tool: 'ship', always: false, by: null },
  ];
  const text = textOf(agent('bo', { tools: [HANDOFF], approvals }), [], 'persona');
  expect(text).toContain(
    "Calls of these tools wait for a person's approval: pay (every call of ana or ben), ship (some calls, by their arguments). All other tools need none.",
  );
  expect(textOf(agent('bo', { tools: [HANDOFF] }), [], 'persona')).not.toContain('approval');
});

test('the agent that gets messages without an addressee is told so', () => {
  expect(textOf(agent('bo', { routes: true }), [], 'persona')).toContain('Messages that address nobody');
  expect(textOf(agent('bo'), [], 'persona')).not.toContain('Messages that address nobody');
});
