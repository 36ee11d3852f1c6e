import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../../src/tools/tool.ts';
import { openStage } from '../../doors/test/stage.ts';
import { createTroupeClient } from '../src/index.ts';

const person = (id: string) => ({ kind: 'user', id, name: id }) as const;
const [ANA, BEN, CYD, MAL] = [person('ana'), person('ben'), person('cyd'), person('mal')];
const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  schema: z.object({ euros: z.number() }),
  needsApproval: { by: ['ana', 'ben', 'mal'] },
  run: ({ euros }) => `paid ${euros}`,
});

/** A room with an approval that Ana and Ben may give, and a question to everybody. Mal is not trusted. */
async function office() {
  const stage = await openStage(['payer', 'asker'], {
    isKeyed: true,
    tools: [pay],
    definition: { trust: { people: ['ana', 'ben', 'cyd', 'operator'] } },
    agents: { payer: { tools: ['pay'] }, asker: { tools: ['ask'] } },
    answers: {
      payer: [{ calls: [{ name: 'pay', args: '{"euros":5}' }] }],
      asker: [{ calls: [{ name: 'ask', args: '{"question":"Which colour?"}' }] }],
    },
  });
  const clientOf = async (scopes: ('read' | 'write' | 'operate')[], author?: ReturnType<typeof person>) => {
    const { secret } = await stage.troupe.keys.create({ name: 'key', scopes, author });
    return createTroupeClient({ url: stage.url, token: secret });
  };
  const { troupe } = stage;
  await troupe.send('c1', { author: ANA, to: ['payer'], content: 'Pay.' });
  await troupe.idle();
  await troupe.send('c1', { author: ANA, to: ['asker'], content: 'Ask.' });
  await troupe.idle();
  return { stage, clientOf };
}

test('an approval is decidable for whom it asks, with a key that may write, and a question for everybody', async () => {
  const { stage, clientOf } = await office();
  await using _stage = stage;
  const program = await clientOf(['read', 'write']);
  const rows = {
    'Ana with a key of her own': (await clientOf(['read', 'write'], ANA)).tasks('c1'),
    'Ana with a key that reads': (await clientOf(['read'], ANA)).tasks('c1'),
    'Cyd with a key of her own': (await clientOf(['read', 'write'], CYD)).tasks('c1'),
    'Mal, who is not trusted': (await clientOf(['read', 'write'], MAL)).tasks('c1'),
    'a program for Ben': program.tasks('c1', { author: BEN }),
    'a program for Cyd': program.tasks('c1', { author: CYD }),
    'a program for nobody': program.tasks('c1'),
  };
  const decidable: Record<string, unknown> = {};
  for (const [who, tasks] of Object.entries(rows))
    decidable[who] = (await tasks).map((task) => task.decidable);
  expect(decidable).toEqual({
    'Ana with a key of her own': [true, true],
    'Ana with a key that reads': [false, false],
    'Cyd with a key of her own': [false, true],
    'Mal, who is not trusted': [false, false],
    'a program for Ben': [true, true],
    'a program for Cyd': [false, true],
    'a program for nobody': [false, true],
  });
});

test('what is said to be decidable is taken, what is not is refused, and what has ended is over', async () => {
  const { stage, clientOf } = await office();
  await using _stage = stage;
  const program = await clientOf(['read', 'write']);
  const [approval, question] = await program.tasks('c1', { author: BEN });
  if (!approval || !question) throw new Error('nothing waits');
  for (const author of [CYD, MAL])
    await expect(program.decide('c1', approval, { approved: true }, { author })).rejects.toMatchObject({
      code: 'command_refused',
    });
  await program.decide('c1', approval, { approved: true }, { author: BEN });
  await program.answer('c1', question, 'Red.', { author: CYD });
  await stage.troupe.idle();
  const after = await program.tasks('c1', { author: BEN });
  expect(after.map(({ end, decidable }) => [end?.outcome, decidable])).toEqual([
    ['approved', false],
    ['answered', false],
  ]);
});

test('nothing is decidable in an archived conversation, until it is open again', async () => {
  const { stage, clientOf } = await office();
  await using _stage = stage;
  const ana = await clientOf(['read', 'write', 'operate'], ANA);
  const decidable = async () => (await ana.tasks('c1', { open: true })).map((task) => task.decidable);
  await stage.troupe.command({ command: 'archive', conversation: 'c1' }, ANA);
  expect(await decidable()).toEqual([false, false]);
  await stage.troupe.command({ command: 'reopen', conversation: 'c1' }, ANA);
  expect(await decidable()).toEqual([true, true]);
});

test('a key with an author asks for no one else', async () => {
  const { stage, clientOf } = await office();
  await using _stage = stage;
  const ana = await clientOf(['read', 'write'], ANA);
  await expect(ana.tasks('c1', { author: BEN })).rejects.toMatchObject({
    code: 'command_refused',
    data: { status: 403, refused: 'author_refused' },
  });
  await expect(ana.tasks('c1', { author: { ...BEN, id: '' } })).rejects.toMatchObject({
    code: 'event_invalid',
    data: { path: 'as' },
  });
});

test('the bytes of an attachment are read by the seq of its message', async () => {
  await using stage = await openStage(['bo']);
  const troupe = createTroupeClient({ url: stage.url });
  const data = Buffer.from([0, 1, 255]).toString('base64');
  const attachments = [{ name: 'a.bin', mediaType: 'application/zip', data }];
  const { seq, body } = await troupe.send('c1', { content: '', attachments });
  expect(body).toMatchObject({ attachments: [{ type: 'file', name: 'a.bin', bytes: 3 }] });
  const blob = await troupe.attachment('c1', seq, 0);
  expect([...new Uint8Array(await blob.arrayBuffer())]).toEqual([0, 1, 255]);
  await expect(troupe.attachment('c1', seq, 1)).rejects.toMatchObject({ code: 'event_invalid' });
});
