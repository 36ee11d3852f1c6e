import assert from 'node:assert/strict';
import type { PromptMessage, ModelEvent, ModelRequest } from './troupe.ts';
import { collectEvents, endOf, textOf } from './provider-scene.ts';
import type { ConformanceCase } from './conformance.ts';
import type { FakeReply } from './fake-server.ts';
import { addLosses, addRewinds } from './session-break-cases.ts';
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
