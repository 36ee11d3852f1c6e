import assert from 'node:assert/strict';
import type { ModelEvent } from './troupe.ts';
import { collectEvents, endOf, failureOf, textOf } from './provider-scene.ts';
import type { FakeReply } from './fake-server.ts';
import { type AddTalk, callsOf, changeOf, HANGING, type Talk, toolResult } from './fake-sessions.ts';

/** Cases about interrupted turns and earlier marks. */
export function addRewinds(add: AddTalk): void {
  addInterruptions(add);
  addEarlierMarks(add);
}

const AFTER = ['mark-persona', 'say-1', 'answer-1', 'say-3'];
const GONE = ['say-2', 'mark-partial', 'answer-2', 'result-of'];
const ANSWER = { text: 'answer-1' };
const LAST = { text: 'answer-3' };

async function rewinds(talk: Talk): Promise<void> {
  const events = await talk.resume('say-3');
  assert.equal(changeOf(events), 'rewound');
  assert.equal(textOf(events), 'answer-3');
  talk.assertSent(...AFTER);
  talk.assertNotSent(...GONE);
}

function addInterruptions(add: AddTalk): void {
  const calling: FakeReply = { text: 'answer-2', calls: [{ name: 'add', args: '{}' }] };

  add('rewinds', 'an aborted turn leaves nothing', [ANSWER, HANGING, LAST], async (talk) => {
    await talk.start('say-1');
    await talk.interrupt((options) => talk.resume('say-2', {}, options));
    await rewinds(talk);
  });

  add(
    'rewinds',
    'a turn aborted before its answer leaves nothing',
    [ANSWER, { hang: true }, LAST],
    async (talk) => {
      await talk.start('say-1');
      const controller = new AbortController();
      const events = talk.resume('say-2', {}, { signal: controller.signal });
      await talk.fixture.arrived(2);
      controller.abort();
      assert.equal((await events).at(-1)?.type, 'aborted');
      await rewinds(talk);
    },
  );

  add('rewinds', 'an abandoned turn leaves nothing', [ANSWER, calling, LAST], async (talk) => {
    await talk.start('say-1');
    assert.equal(endOf(await talk.resume('say-2')).stop, 'calls');
    talk.provider.leave?.('default/conf/ana');
    await rewinds(talk);
  });

  add('rewinds', 'a waiting turn ends with the next one', [ANSWER, calling, LAST], async (talk) => {
    await talk.start('say-1');
    assert.equal(endOf(await talk.resume('say-2')).stop, 'calls');
    await rewinds(talk);
  });

  add(
    'rewinds',
    'a turn aborted after a result leaves nothing',
    [ANSWER, calling, HANGING, LAST],
    async (talk) => {
      await talk.start('say-1');
      const [call] = callsOf(await talk.resume('say-2'));
      assert.ok(call);
      const messages = [toolResult(call.id, 'add', 'result-of-add')];
      await talk.interrupt((options) =>
        collectEvents(talk.provider, talk.request({ messages, session: { kind: 'continue' } }), options),
      );
      await rewinds(talk);
    },
  );

  const refused: FakeReply = { error: { code: 'provider_rate_limited' } };
  add('rewinds', 'a failed turn leaves nothing', [ANSWER, refused, LAST], async (talk) => {
    await talk.start('say-1');
    assert.equal(failureOf(await talk.resume('say-2')).code, 'provider_rate_limited');
    await rewinds(talk);
  });
}

function addEarlierMarks(add: AddTalk): void {
  const four = [ANSWER, { text: 'answer-2' }, LAST, { text: 'answer-4' }];
  add('rewinds', 'a session continues from an earlier mark', four, async (talk) => {
    await talk.start('say-1');
    const { mark } = talk;
    await talk.resume('say-2');
    talk.mark = mark;
    await rewinds(talk);
    const events = await talk.resume('say-4');
    assert.equal(changeOf(events), 'warm');
    talk.assertSent(...AFTER, 'answer-3', 'say-4');
  });

  add('rewinds', 'another process can use an earlier mark', four, async (talk) => {
    await talk.start('say-1');
    const { mark } = talk;
    await talk.resume('say-2');
    talk.mark = mark;
    talk.provider = await talk.fixture.reopen();
    assert.equal(textOf(await talk.resume('say-3')), 'answer-3');
    talk.assertSent(...AFTER);
    talk.assertNotSent(...GONE);
  });

  add('rewinds', 'a start after an aborted first turn is new', [HANGING, ANSWER], async (talk) => {
    await talk.interrupt((options) => talk.start('say-0', {}, options));
    assert.equal(changeOf(await talk.start('say-1')), 'started');
    talk.assertSent('mark-persona', 'say-1');
    talk.assertNotSent('say-0', 'mark-partial');
  });
}

/** Cases about lost sessions and programs. */
export function addLosses(add: AddTalk): void {
  const two = [{ text: 'answer-1' }, { text: 'answer-2' }];
  for (const id of ['00000000-0000-4000-8000-000000000000', 'not-an-id']) {
    add('losses', `the unknown session ${id} is lost`, two, async (talk) => {
      talk.mark = { id, checkpoint: '00000000-0000-4000-8000-000000000001' };
      assert.equal(failureOf(await talk.resume('say-1')).code, 'provider_session_lost');
      assert.equal(talk.fixture.requests(), 0);
      assert.equal(textOf(await talk.start('say-2')), 'answer-1');
    });
  }

  add('losses', 'an unknown checkpoint is lost', two, async (talk) => {
    await talk.start('say-1');
    assert.ok(talk.mark);
    talk.mark = { ...talk.mark, checkpoint: '00000000-0000-4000-8000-000000000001' };
    assert.equal(failureOf(await talk.resume('say-2')).code, 'provider_session_lost');
    assert.equal(talk.fixture.requests(), 1);
  });

  const calling: FakeReply = { calls: [{ name: 'add', args: '{}' }] };
  add('losses', 'results for a lost turn are refused', [calling, ...two], async (talk) => {
    const [call] = callsOf(await talk.start('say-1'));
    assert.ok(call);
    talk.provider = await talk.fixture.reopen();
    const messages = [toolResult(call.id, 'add', 'late')];
    const request = talk.request({ messages, session: { kind: 'continue' } });
    assert.equal(failureOf(await collectEvents(talk.provider, request)).code, 'provider_session_lost');
    assert.equal(talk.fixture.requests(), 1);
  });

  const three = [...two, { text: 'answer-3' }];
  add('losses', 'a dead program is restarted, and the session continues', three, async (talk) => {
    if (!talk.fixture.kill) return;
    await talk.start('say-1');
    const { mark } = talk;
    await talk.resume('say-2');
    await talk.fixture.kill();
    // The last turn may be lost with the program; earlier ones must not.
    talk.mark = mark;
    assert.equal(textOf(await talk.resume('say-3')), 'answer-3');
    talk.assertSent('say-1', 'answer-1', 'say-3');
    talk.assertNotSent('say-2');
  });

  const dying = [{ text: 'answer-1' }, HANGING, { text: 'answer-3' }];
  add('losses', 'a turn fails with its program; the next one rewinds', dying, async (talk) => {
    if (!talk.fixture.kill) return;
    await talk.start('say-1');
    talk.provider = await talk.fixture.reopen();
    const onEvent = ({ type }: ModelEvent) => void (type === 'text' && talk.fixture.kill?.());
    const failed = await talk.resume('say-2', {}, { onEvent });
    assert.equal(failureOf(failed).code, 'provider_truncated');
    assert.equal(textOf(await talk.resume('say-3')), 'answer-3');
    talk.assertSent('say-1', 'answer-1', 'say-3');
    talk.assertNotSent('say-2', 'mark-partial');
  });
}
