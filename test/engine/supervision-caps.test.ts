import { describe, expect, test } from 'vitest';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import { ROOM, UMA } from '../support/company.ts';
import { openTroupe } from '../support/mode.ts';
import { calls, lists, only, room, verified, work } from '../support/supervision-stage.ts';

describe('L4 corrections without effect', () => {
  test('three, then the answer is accepted, and people are notified', async () => {
    await using company = await room(['todo'], [lists(['pending sail']), 'a', 'b', 'c', 'd', 'never']);
    await company.say(UMA, 'p', 'go');
    expect(company.requests('p')).toHaveLength(5);
    expect(await only(company, 'injection')).toHaveLength(3);
    expect(await only(company, 'guard.stopped')).toMatchObject([
      {
        author: { kind: 'system' },
        body: { guard: 'supervision', message: expect.stringContaining('told 3 times') },
      },
    ]);
    expect((await only(company, 'message')).at(-1)?.body.content).toBe('d');
    expect(await only(company, 'turn.done')).toHaveLength(1);
    // Each request ends in one note, the newest.
    for (const n of [3, 4, 5])
      expect(JSON.stringify(company.raw('p', n)).split('cannot end yet')).toHaveLength(2);
    await verified(company, `${ROOM}:p:1`, 5);
  });

  test('writing the same list again is no progress', async () => {
    const same = lists(['pending sail']);
    await using company = await room(['todo'], [same, 'a', same, 'b', same, 'c', same, 'd', 'never']);
    await company.say(UMA, 'p', 'go');
    expect((await only(company, 'message')).at(-1)?.body.content).toBe('d');
  });

  test.each([
    ['a change of the list', lists(['active sail']), 3],
    ['a call that has done something', calls('work'), 3],
    ['a call that failed', calls('fails'), 0],
  ])('%s begins a new count (%#)', async (_, between, more) => {
    const answers = [lists(['pending sail']), 'a', 'b', 'c', between, 'd', 'e', 'f', 'g', 'h'];
    await using company = await room(['todo', 'work', 'fails'], answers);
    await company.say(UMA, 'p', 'go');
    expect(await only(company, 'injection')).toHaveLength(3 + more);
    expect(await only(company, 'guard.stopped')).toHaveLength(1);
  });

  test('there are at most thirty, whatever changes', async () => {
    const steps = Array.from({ length: 70 }, (_, index) => index + 2);
    const script = {
      rules: [
        { when: { step: 1 }, calls: [{ name: 'todo', args: { items: [{ text: 'x', status: 'pending' }] } }] },
        ...steps.map((step) => ({
          when: { step },
          ...(step % 2 ? { calls: [{ name: 'work', args: {} }] } : { reply: 'so' }),
        })),
      ],
    };
    await using troupe = await openTroupe(
      {
        agents: [
          { id: 'p', provider: 'scripted', model: 'm', tools: ['todo', 'work'], script } as AgentInput,
        ],
        tools: [work],
        limits: { maxSteps: 100 },
      },
      { constants: { limits: { maxRepeats: 100 } } },
    );
    await troupe.send(ROOM, { author: UMA, to: ['p'], content: 'go' });
    await troupe.idle();
    const { events } = await troupe.events(ROOM);
    expect(events.filter(({ kind }) => kind === 'injection')).toHaveLength(30);
    expect(events.filter(({ kind }) => kind === 'guard.stopped')).toMatchObject([
      { body: { guard: 'supervision', message: expect.stringContaining('told 30 times in one turn') } },
    ]);
    expect(events.at(-1)?.kind).toBe('turn.done');
  });

  test('the setting of the agent overrides that of the troupe', async () => {
    const agent = (id: string, more: object) =>
      ({
        id,
        provider: 'scripted',
        tools: ['todo'],
        script: {
          rules: [
            {
              when: { step: 1 },
              calls: [{ name: 'todo', args: { items: [{ text: 'x', status: 'pending' }] } }],
            },
            { reply: 'no' },
          ],
        },
        ...more,
      }) as AgentInput;
    await using troupe = await openTroupe({
      agents: [agent('a', {}), agent('b', { supervision: true }), agent('c', { supervision: false })],
      supervision: false,
    });
    await troupe.send(ROOM, { author: UMA, to: ['a', 'b', 'c'], content: 'go' });
    await troupe.idle();
    const { events } = await troupe.events(ROOM);
    const corrected = events.filter(({ kind }) => kind === 'injection').map(({ author }) => author.id);
    expect(corrected).toEqual(['b', 'b', 'b']);
    expect(events.filter(({ kind }) => kind === 'guard.stopped')).toHaveLength(1);
  });

  test('limits.maxSteps bounds them too: the answer stands, and people are notified', async () => {
    const script = {
      rules: [
        { when: { step: 1 }, calls: [{ name: 'todo', args: { items: [{ text: 'x', status: 'pending' }] } }] },
        { reply: 'no' },
      ],
    };
    await using troupe = await openTroupe({
      agents: [{ id: 'p', provider: 'scripted', model: 'm', tools: ['todo'], script } as AgentInput],
      limits: { maxSteps: 3 },
    });
    await troupe.send(ROOM, { author: UMA, to: ['p'], content: 'go' });
    await troupe.idle();
    const { events } = await troupe.events(ROOM);
    expect(events.filter(({ kind }) => kind === 'injection')).toHaveLength(1);
    expect(events.find(({ kind }) => kind === 'guard.stopped')).toMatchObject({ body: { guard: 'steps' } });
    expect(events.at(-1)).toMatchObject({ kind: 'turn.done', body: { steps: 3 } });
  });
});
