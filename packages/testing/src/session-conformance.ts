import assert from 'node:assert/strict';
import type { PromptMessage, ModelEvent, ModelRequest } from './troupe.ts';
import { collectEvents, endOf, textOf, failureOf } from './provider-conformance.ts';
import type { ConformanceCase } from './conformance.ts';
import type { FakeReply } from './fake-vendors.ts';
import {
  type AddTalk,
  callsOf,
  changeOf,
  HANGING,
  idOf,
  type SessionFixture,
  system,
  Talk,
  toolResult,
  user,
} from './fake-sessions.ts';

export type { SessionFixture } from './fake-sessions.ts';

/** Calls in `next` use the tool names of the request; `make` translates them for a vendor with other names. */
export type MakeSessions = (next: () => FakeReply) => Promise<SessionFixture>;

/** The contract of a provider with sessions. `make` is called once per case. */
export function sessionConformance(make: MakeSessions): ConformanceCase[] {
  const cases: ConformanceCase[] = [];
  const add: AddTalk = (group, name, replies, run) =>
    cases.push({
      group,
      name,
      async run() {
        const left = [...replies];
        await using fixture = await make(() => left.shift() ?? { text: 'an unexpected request' });
        await run(new Talk(fixture, left));
      },
    });
  addSessions(add);
  addDeltas(add);
  addTools(add);
  addRewinds(add);
  addLosses(add);
  addOthers(add);
  return cases;
}

function addSessions(add: AddTalk): void {
  add('sessions', 'a start has an id and ends with a mark', [{ text: 'answer-1' }], async (talk) => {
    const events = await talk.start('say-1');
    assert.equal(changeOf(events), 'started');
    assert.equal(textOf(events), 'answer-1');
    assert.equal(talk.mark?.id, idOf(events));
    assert.notEqual(talk.mark?.checkpoint, '');
    talk.assertSent('mark-persona', 'say-1');
  });

  add(
    'sessions',
    'a session is resumed at its end as it is, and takes the instructions of the request',
    [{ text: 'answer-1' }, { text: 'answer-2' }, { text: 'answer-3' }],
    async (talk) => {
      const plain = { tools: [] };
      await talk.start('say-1', plain);
      assert.ok(talk.mark);
      const session = { kind: 'resume', mark: { ...talk.mark, checkpoint: '' } } as const;
      const messages = [system(), user('say-2')];
      const events = await talk.resume('', { ...plain, messages, session });
      assert.equal(textOf(events), 'answer-2');
      talk.assertSent('mark-persona', 'say-1', 'answer-1', 'say-2');
      await talk.resume('say-3', plain);
      talk.assertSent('mark-persona', 'say-1', 'answer-1', 'say-2', 'answer-2', 'say-3');
    },
  );

  add('sessions', 'a start sends a whole history once', [{ text: 'answer-1' }], async (talk) => {
    const messages: PromptMessage[] = [
      system(),
      user('say-1'),
      {
        role: 'assistant',
        content: 'own-1',
        calls: [{ id: 'c1', name: 'add', args: '{"a":41}' }],
        seqs: [],
      },
      toolResult('c1', 'add', 'old-result'),
      { role: 'assistant', content: 'own-2', seqs: [] },
      user('say-2'),
    ];
    await talk.start('', { messages });
    talk.assertSent('mark-persona', 'say-1', 'own-1', '{"a":41}', 'old-result', 'own-2', 'say-2');
  });

  const three = [{ text: 'answer-1' }, { text: 'answer-2' }, { text: 'answer-3' }];
  const said = ['mark-persona', 'say-1', 'answer-1', 'say-2', 'answer-2', 'say-3'];
  add('sessions', 'successive turns are warm and send every text once', three, async (talk) => {
    const first = await talk.start('say-1');
    const second = await talk.resume('say-2');
    const third = await talk.resume('say-3');
    assert.deepEqual([changeOf(second), changeOf(third)], ['warm', 'warm']);
    assert.deepEqual([idOf(second), idOf(third)], [idOf(first), idOf(first)]);
    talk.assertSent(...said);
    assert.equal(talk.fixture.requests(), 3);
  });

  add('sessions', 'another process resumes a session', three, async (talk) => {
    await talk.start('say-1');
    talk.provider = await talk.fixture.reopen();
    const second = await talk.resume('say-2');
    talk.provider = await talk.fixture.reopen();
    const third = await talk.resume('say-3');
    assert.deepEqual([changeOf(second), changeOf(third)], ['resumed', 'resumed']);
    talk.assertSent(...said);
    assert.equal(talk.fixture.requests(), 3);
  });
}

function addDeltas(add: AddTalk): void {
  const three = [{ text: 'answer-1' }, { text: 'answer-2' }, { text: 'answer-3' }];
  add(
    'sessions',
    'several messages are one turn',
    [{ text: 'answer-1' }, { text: 'answer-2' }],
    async (talk) => {
      await talk.start('say-1');
      await talk.resume('', { messages: [user('say-2'), user('say-3'), user('say-4')] });
      talk.assertSent('mark-persona', 'say-1', 'answer-1', 'say-2', 'say-3', 'say-4');
      assert.equal(talk.fixture.requests(), 2);
    },
  );

  add('sessions', 'two agents have separate sessions', three, async (talk) => {
    const other = new Talk(talk.fixture, talk.replies);
    const over = { cacheKey: 'default/conf/ben' };
    await talk.start('say-1');
    await other.start('other-1', over);
    await talk.resume('say-2');
    talk.assertSent('say-1', 'answer-1', 'say-2');
    talk.assertNotSent('other-1', 'answer-2');
    await other.resume('other-2', over);
    talk.assertSent('other-1', 'answer-2', 'other-2');
    talk.assertNotSent('say-1', 'answer-1');
  });
}

function addTools(add: AddTalk): void {
  const call = (name: string, args = '{}') => ({ name, args });
  const one: FakeReply = { text: 'I will. ', calls: [call('add', '{"a":7}')] };

  add('tools', 'a turn continues with a result', [one, { text: 'answer-1' }], async (talk) => {
    const asked = await talk.start('say-1');
    assert.deepEqual(
      callsOf(asked).map(({ name, args }) => [name, args]),
      [['add', '{"a":7}']],
    );
    assert.equal(endOf(asked).stop, 'calls');
    const events = await talk.goOn(asked);
    assert.equal(endOf(events).stop, 'end');
    assert.equal(textOf(events), 'I will. answer-1');
    assert.equal(talk.fixture.requests(), 2);
    talk.assertSent('mark-persona', 'say-1', 'I will.', 'result-of-add');
  });

  const two: FakeReply = { calls: [call('add', '{"a":1}'), call('list')] };
  add('tools', 'an answer may have two calls', [two, { text: 'answer-1' }], async (talk) => {
    const events = await talk.goOn(await talk.start('say-1'));
    assert.deepEqual(
      callsOf(events).map(({ name }) => name),
      ['add', 'list'],
    );
    assert.equal(talk.fixture.requests(), 2);
    talk.assertSent('say-1', 'result-of-add', 'result-of-list');
  });

  const chain = [one, { text: 'And. ', calls: [call('list')] }, { text: 'answer-1' }, { text: 'answer-2' }];
  add('tools', 'a session keeps all steps of a turn', chain, async (talk) => {
    const events = await talk.goOn(await talk.start('say-1'));
    assert.equal(textOf(events), 'I will. And. answer-1');
    const next = await talk.resume('say-2');
    assert.equal(changeOf(next), 'warm');
    talk.assertSent('say-1', 'I will.', 'result-of-add', 'And.', 'result-of-list', 'answer-1', 'say-2');
  });

  add('tools', 'usage covers one model call', [one, { text: 'answer-1' }], async (talk) => {
    const usage = { input: 120, output: 30, cacheRead: 90, cacheWrite: 0, reasoning: 0 };
    for (const reply of talk.replies) Object.assign(reply, { usage });
    const asked = await talk.start('say-1');
    assert.deepEqual(endOf(asked).usage, usage);
    assert.deepEqual(endOf(await talk.goOn(asked)).usage, usage);
  });

  const answers = [one, { text: 'answer-1' }, { text: 'answer-2' }];
  add('tools', 'the result of a failed tool is sent', answers, async (talk) => {
    const [asked] = callsOf(await talk.start('say-1'));
    assert.ok(asked);
    const message = { ...toolResult(asked.id, 'add', 'it broke'), failed: true };
    const request = talk.request({ messages: [message], session: { kind: 'continue' } });
    assert.equal(textOf(await collectEvents(talk.provider, request)), 'answer-1');
    talk.assertSent('say-1', 'it broke');
  });
}

function addOthers(add: AddTalk): void {
  const calling: FakeReply = { calls: [{ name: 'add', args: '{}' }] };
  const summary = { text: 'the-summary' };
  add(
    'compactions',
    'a compaction runs beside an open turn',
    [calling, summary, { text: 'answer-1' }],
    async (talk) => {
      const asked = await talk.start('say-1');
      const over = { messages: [system(), user('summarise-this')], tools: [] };
      const { trace, ...request } = talk.request(over);
      const compaction: ModelRequest = { ...request, trace: { ...trace, purpose: 'compaction' } };
      const events = await collectEvents(talk.provider, compaction);
      assert.equal(textOf(events), 'the-summary');
      assert.equal(endOf(events).session, undefined);
      talk.assertSent('summarise-this');
      talk.assertNotSent('say-1');
      await talk.goOn(asked);
      talk.assertSent('say-1', 'result-of-add');
      talk.assertNotSent('the-summary', 'summarise-this');
    },
  );

  const first = ['/compact', '@package.json'];
  const later = ['/clear', '--help', '-v', '!ls', '# note', '  two  \n\n spaces '];
  const replies = later.map((_, i) => ({ text: `answer-${i}` }));
  for (const text of first) {
    add(
      'texts',
      `a text like a command is sent unchanged (${text})`,
      [{ text: 'ok' }, ...replies],
      async (talk) => {
        assert.equal(textOf(await talk.start(text)), 'ok');
        for (const [i, next] of later.entries()) assert.equal(textOf(await talk.resume(next)), `answer-${i}`);
        const sent = talk.fixture.transcript();
        for (const said of [text, ...later]) assert.equal(sent.split(said).length - 1, 1, said);
        assert.equal(talk.fixture.requests(), 1 + later.length);
      },
    );
  }

  add('closing', 'closing ends open streams', [HANGING], async (talk) => {
    const onEvent = ({ type }: ModelEvent) => void (type === 'text' && talk.provider.close?.());
    const events = await talk.start('say-1', {}, { onEvent });
    assert.ok(['failed', 'aborted'].includes(events.at(-1)?.type ?? ''), JSON.stringify(events.at(-1)));
  });
}

function addRewinds(add: AddTalk): void {
  addInterruptions(add);
  addEndsByCalls(add);
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

/** A turn ends with its calls, as by a handoff. The next one brings the calls with their results, and what was said since. */
function addEndsByCalls(add: AddTalk): void {
  const call: FakeReply = { calls: [{ name: 'add', args: '{"a":1}' }] };
  const two: FakeReply = { text: 'answer-2', calls: [...(call.calls ?? []), { name: 'list', args: '{}' }] };
  const ends: [name: string, calling: FakeReply, end: (talk: Talk) => unknown][] = [
    ['is not sent again', call, (talk) => talk.provider.leave?.('default/conf/ana')],
    ['and was not left, neither', call, () => undefined],
    ['of its process is not sent again', two, async (talk) => (talk.provider = await talk.fixture.reopen())],
  ];
  for (const [name, calling, end] of ends)
    add('rewinds', `a turn that its calls ended ${name}`, [ANSWER, calling, LAST], async (talk) => {
      await talk.start('say-1');
      const calls = callsOf(await talk.resume('say-2'));
      const mark = talk.atCalls;
      assert.ok(mark, 'an answer with calls has no mark');
      await end(talk);
      const messages: PromptMessage[] = [
        { role: 'assistant', content: '', calls, seqs: [] },
        ...calls.map(({ id, name: tool }) => toolResult(id, tool, `result-of-${tool}`)),
        user('say-3'),
      ];
      const next = await talk.resume('', { messages, session: { kind: 'resume', mark } });
      assert.equal(textOf(next), 'answer-3');
      assert.notEqual(changeOf(next), 'rewound');
      const results = calls.map(({ name: tool }) => `result-of-${tool}`);
      talk.assertSent('mark-persona', 'say-1', 'answer-1', 'say-2', ...results, 'say-3');
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

function addLosses(add: AddTalk): void {
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
