import fc from 'fast-check';
import { expect } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { attack } from './attack.ts';
import { only, openStage } from './stage.ts';

/** Names similar to a granted one, names granted to another agent, and names of the runtime's own tools. */
const name = fc.constantFrom(
  'pay_out',
  'PAY_OUT',
  'look2',
  'Look',
  'LOOK',
  ' look',
  'look ',
  'loo',
  'look_',
  'l\u043e\u043ek',
  'ｌｏｏｋ',
  'look\u200b',
  'functions.look',
  'look/../pay_out',
  'delegate',
  'handoff',
  'cancel_task',
  'constructor',
  '__proto__',
  'toString',
  'run',
);

attack(26, 'a tool that was not granted does not run, under any name', async (refused) => {
  const ran: string[] = [];
  const [look, pay, lookTwo] = ['look', 'pay_out', 'look2'].map((tool) =>
    defineTool({
      name: tool,
      description: tool,
      schema: z.object({}),
      run() {
        ran.push(tool);
        return 'ran';
      },
    }),
  );
  if (!look || !pay || !lookTwo) throw new Error('unreachable');
  let called = 'pay_out';
  await using stage = await openStage({
    agents: [
      { id: 'bo', tools: ['look'] },
      { id: 'cy', tools: ['pay_out', 'look2', 'delegate', 'handoff'] },
    ],
    tools: [look, pay, lookTwo],
    answer: ({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? { text: 'done' }
        : { calls: [{ name: called, args: '{"to":"cy","task":"pay","goal":"pay"}' }] },
  });
  let round = 0;
  await fc.assert(
    fc.asyncProperty(name, async (wanted) => {
      called = wanted;
      const conversation = `c${(round += 1)}`;
      await stage.say(conversation, 'go', { to: ['bo'] });
      const offered = stage.vendor.requests.at(-1)?.body as { tools: { function: { name: string } }[] };
      expect(offered.tools.map(({ function: { name: each } }) => each)).not.toContain('pay_out');
      const events = await stage.events(conversation);
      expect(only(events, 'tool.result').map(({ body }) => body.outcome)).toEqual(['failed']);
      expect(stage.sentBy('bo').at(-1)?.at(-1)).toMatchObject({
        role: 'tool',
        content: expect.stringMatching(/no tool|not|unknown/i),
      });
      expect(events.some(({ kind }) => kind === 'delegation.opened' || kind === 'handoff')).toBe(false);
    }),
    { numRuns: 30 },
  );
  expect([ran, stage.sentBy('cy')]).toEqual([[], []]);
  refused('tool.result failed');
  called = 'look';
  await stage.say('ok', 'go', { to: ['bo'] });
  expect(ran).toEqual(['look']);
});
