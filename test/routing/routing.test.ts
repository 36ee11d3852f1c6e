import { describe, expect, test } from 'vitest';
import type { AgentId } from '../../src/events/index.ts';
import { parseTroupe, type TroupeInput } from '../../src/library/config/agents-file.ts';
import { bestByCapability, nextInRound } from '../../src/library/routing/route.ts';
import { ANA, scripted } from '../http/harness.ts';
import { openTroupe } from '../support/mode.ts';
import { tempDir } from '../store/temp-dir.ts';

const AGENTS = ['lead', 'coder', 'writer'].map((id) => scripted(id, [{ reply: `${id} {{n}}` }]));

async function whoHears(company: Partial<TroupeInput>, contents: string[]): Promise<string[][]> {
  await using troupe = await openTroupe({ agents: AGENTS, ...company }, { onWarning: () => {} });
  const heard: string[][] = [];
  for (const content of contents) heard.push((await troupe.send('c', { author: ANA, content })).event.to);
  return heard;
}

describe('an unaddressed message', () => {
  test('is matched against a pattern with its first 4,096 characters', async () => {
    const rules = [{ matches: 'bug', to: ['coder'] }];
    const heard = await whoHears({ routing: { by: 'rules', rules } }, [
      `${'x'.repeat(4_093)}bug`,
      `${'x'.repeat(4_094)}bug`,
    ]);
    expect(heard).toEqual([['coder'], []]);
  });

  test('goes to the agents in turn, and the round continues after a restart', async () => {
    const dir = tempDir();
    const company = {
      agents: AGENTS,
      routing: { by: 'round', agents: ['lead', 'coder', 'writer'] },
    } as const;
    const heard: string[] = [];
    for (let run = 0; run < 2; run++) {
      await using troupe = await openTroupe(
        { ...company, routing: { ...company.routing, agents: [...company.routing.agents] } },
        { data: dir, onWarning: () => {} },
      );
      for (const content of ['a', 'b']) {
        const { event } = await troupe.send('c', { author: ANA, content });
        expect(event.context?.routed).toBe('round');
        heard.push(...event.to);
      }
      await troupe.idle();
    }
    expect(heard).toEqual(['lead', 'coder', 'writer', 'lead']);
  });

  test('goes by the first matching rule, otherwise to the default agent', async () => {
    const heard = await whoHears(
      {
        routing: {
          by: 'rules',
          rules: [
            { matches: '\\bbug\\b', to: ['coder', 'lead'] },
            { from: ['u2'], to: ['lead'] },
            { conversation: '^c$', matches: 'text', to: ['writer'] },
          ],
        },
        defaults: { respondWhenUnaddressed: 'lead' },
      },
      ['a BUG!', 'debugging', 'a text'],
    );
    expect(heard).toEqual([['coder', 'lead'], ['lead'], ['writer']]);
  });

  test('goes to the agent whose capabilities match its words', async () => {
    const agents = AGENTS.map((agent) => ({
      ...agent,
      ...(agent.id === 'coder' && { capabilities: ['typescript', 'debugging'] }),
      ...(agent.id === 'writer' && { description: 'writes and translates texts' }),
    }));
    const asked = ['please debug this Typescript', 'can you translate the letter?', 'hello'];
    expect(await whoHears({ agents, routing: { by: 'capability' } }, asked)).toEqual([
      ['coder'],
      ['writer'],
      [],
    ]);
  });

  test('goes to a fixed agent', async () => {
    expect(await whoHears({ routing: { by: 'agent', agent: 'lead' } }, ['x'])).toEqual([['lead']]);
  });

  test('skips an agent that has left, and keeps its recipients when it is sent again', async () => {
    await using troupe = await openTroupe(
      { agents: AGENTS, routing: { by: 'round', agents: ['lead', 'coder'] } },
      { onWarning: () => {} },
    );
    const first = { id: 'm1' as never, author: ANA, content: 'x' };
    await troupe.send('c', first);
    expect((await troupe.send('c', first)).kind).toBe('exists');
    await troupe.command({ command: 'leave', conversation: 'c' as never, agent: 'coder' as AgentId }, ANA);
    expect((await troupe.send('c', { author: ANA, content: 'y' })).event.to).toEqual(['lead']);
    const both = await Promise.all(
      [1, 2, 3].map(() => troupe.send('c', { id: 'm2' as never, author: ANA, content: 'z' })),
    );
    expect(new Set(both.map(({ event }) => event.seq)).size).toBe(1);
  });
});

test.each([
  [{ by: 'agent', agent: 'nobody' }, 'routing.agent: there is no agent "nobody"'],
  [{ by: 'round', agents: ['lead', 'led'] }, 'routing.agents[1]: there is no agent "led"'],
  [{ by: 'rules', rules: [{ matches: '(', to: ['lead'] }] }, 'routing.rules[0].matches:'],
  [{ by: 'rules', rules: [{ to: ['lead'] }] }, 'routing.rules[0]: a rule needs a condition'],
  [{ by: 'chance' }, 'routing.by'],
])('routing %j is refused with its path', (routing, problem) => {
  expect(() => parseTroupe({ agents: AGENTS, routing })).toThrow(problem);
});

test('a round begins with the first agent, continues after the one asked last, and wraps around', () => {
  expect(nextInRound([], () => 1)).toEqual([]);
  expect(nextInRound(['a', 'b'], () => undefined)).toEqual(['a']);
  expect(
    nextInRound(['a', 'b', 'c'], (id) =>
      new Map([
        ['a', 9],
        ['b', 4],
      ]).get(id),
    ),
  ).toEqual(['b']);
  expect(
    nextInRound(['a', 'b', 'c'], (id) =>
      new Map([
        ['c', 9],
        ['a', 4],
      ]).get(id),
    ),
  ).toEqual(['a']);
});

test('the first of equally capable agents is chosen; without a match, none', () => {
  const agent = (id: string, ...capabilities: string[]) => ({
    id: id as AgentId,
    role: 'peer',
    description: '',
    capabilities,
  });
  expect(
    bestByCapability('sing a song', [agent('a', 'singing'), agent('b', 'sing'), agent('c', 'sing')]),
  ).toEqual(['b']);
  expect(bestByCapability('sing a song', [agent('a', 'dance')])).toEqual([]);
});
