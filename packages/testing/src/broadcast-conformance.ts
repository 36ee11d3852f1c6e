import assert from 'node:assert/strict';
import {
  ActorAddress,
  addressKey,
  keyOfText,
  turnId,
  type LiveNote,
  type StateNote,
  type TextNote,
  type Told,
  type TurnId,
  type Broadcast,
  type Notice,
} from './troupe.ts';
import type { ConformanceCase } from './conformance.ts';

/**
 * The contract of a broadcast, in real time. `open` returns the requested number of connected members, which no other
 * case shares and which report errors of listeners without throwing. No case waits for a notice that must not arrive:
 * notices of one member arrive in order, so a later notice serves as the barrier.
 */
const A = address('a');
const B = address('b');
const TURN = turnId(A, 1);

type AddCase = (
  group: string,
  name: string,
  run: (speaker: Member, hearer: Member, third: Member) => Promise<void>,
) => ConformanceCase;

/** Cases that every broadcast must pass. */
export function broadcastConformance(open: (count: number) => Promise<Broadcast[]>): ConformanceCase[] {
  const on: AddCase = (group, name, run) => ({
    group,
    name,
    async run() {
      const [speaker, hearer, third, ...rest] = (await open(3)).map(createMember);
      assert.ok(
        speaker && hearer && third && rest.length === 0,
        'open must return the requested number of members',
      );
      try {
        await run(speaker, hearer, third);
      } finally {
        await Promise.all([speaker, hearer, third].map((each) => each.broadcast.close()));
      }
    },
  });

  return [...delivery(on), ...order(on), ...joining(on), ...isolation(on), ...closing(on)];
}

function delivery(on: AddCase): ConformanceCase[] {
  return [
    on('B1', 'every kind of notice reaches all other members', async (speaker, ...others) => {
      const notices: Notice[] = [
        appended(4, 7),
        delta(0, 'Grüße \u{1F600}\n'),
        told({ type: 'reasoning', index: 0, text: 'hm' }),
        told({ type: 'arguments', call: 'k1', name: 'search', index: 0, text: '{' }),
        told({ type: 'called', call: 'k1', name: 'search', args: '{}' }),
        told({ type: 'progress', call: 'k1', name: 'search', done: 1, total: 2 }),
        told({ type: 'result', call: 'k1', name: 'search', outcome: 'done', text: 'found' }),
        told({ type: 'void', reason: 'provider_failed', all: false }),
        { type: 'recall', tenant: A.tenant, conversation: A.conversation },
        { type: 'recalled', tenant: A.tenant, conversation: A.conversation, notes: toldAgain() },
        state('working.acting', { event: 'MODEL_CALLED', doing: ['search'] }),
        state('paused', { ...B, turn: null, event: 'PAUSE' }),
        stop(TURN),
      ];
      for (const each of notices) speaker.broadcast.publish(each);
      for (const other of others) {
        await other.heardOf(stop(TURN));
        assert.deepEqual(other.heard, notices);
      }
    }),
    on('B1', 'the publisher never receives its own notices', async (speaker, hearer, third) => {
      speaker.broadcast.publish(stop(TURN));
      await hearer.heardOf(stop(TURN));
      await third.heardOf(stop(TURN));
      hearer.broadcast.publish(stop(turnId(B, 1)));
      await speaker.heardOf(stop(turnId(B, 1)));
      assert.deepEqual(speaker.heard, [stop(turnId(B, 1))]);
    }),
    on('B1', 'all listeners receive a notice until they unsubscribe', async (speaker, hearer) => {
      const second: Notice[] = [];
      const unsubscribe = hearer.broadcast.subscribe((notice) => second.push(notice));
      speaker.broadcast.publish(stop(turnId(A, 1)));
      await hearer.heardOf(stop(turnId(A, 1)));
      unsubscribe();
      unsubscribe();
      speaker.broadcast.publish(stop(turnId(A, 2)));
      await hearer.heardOf(stop(turnId(A, 2)));
      assert.deepEqual(second, [stop(turnId(A, 1))]);
    }),
  ];
}

function order(on: AddCase): ConformanceCase[] {
  return [
    on('B2', 'pieces of one step arrive whole and in order', async (speaker, hearer) => {
      const pieces = Array.from({ length: 300 }, (_, index) => `${index} `);
      for (const [index, text] of pieces.entries()) speaker.broadcast.publish(delta(index, text));
      speaker.broadcast.publish(stop(TURN));
      await hearer.heardOf(stop(TURN));
      const heard = deltasIn(hearer.heard);
      assert.equal(heard.map((each) => each.text).join(''), pieces.join(''));
      let index = 0;
      for (const each of heard) {
        assert.equal(each.index, index, 'the index differs from that of the first piece');
        index += each.text.trimEnd().split(' ').length;
      }
    }),
    on('B2', 'a piece with index 0 is never joined to earlier ones', async (speaker, hearer) => {
      for (const [index, text] of ['a', 'b', 'c'].entries()) speaker.broadcast.publish(delta(index, text));
      for (const [index, text] of ['x', 'y', 'z'].entries()) speaker.broadcast.publish(delta(index, text));
      speaker.broadcast.publish(stop(TURN));
      await hearer.heardOf(stop(TURN));
      let text = '';
      for (const each of deltasIn(hearer.heard)) text = each.index === 0 ? each.text : text + each.text;
      assert.equal(text, 'xyz');
    }),
    on('B2', 'pieces of other steps, attempts, turns and actors stay apart', async (speaker, hearer) => {
      const places: Partial<TextNote>[] = [
        {},
        { step: 2 },
        { round: 2 },
        { attempt: 2 },
        { turn: turnId(A, 2) },
        B,
        address('a', 'other'),
      ];
      for (let index = 0; index < 3; index += 1) {
        for (const [at, place] of places.entries()) speaker.broadcast.publish(delta(index, `${at}`, place));
      }
      speaker.broadcast.publish(stop(TURN));
      await hearer.heardOf(stop(TURN));
      for (const [at, place] of places.entries()) {
        const wanted = delta(0, '', place);
        const heard = deltasIn(hearer.heard).filter(
          (each) => addressKey(each) === addressKey(wanted) && keyOfText(each) === keyOfText(wanted),
        );
        assert.equal(heard.map((each) => each.text).join(''), `${at}`.repeat(3));
      }
    }),
  ];
}

function joining(on: AddCase): ConformanceCase[] {
  return [
    on('B2', 'appends to one conversation may be joined, without gaps', async (speaker, hearer) => {
      for (let head = 1; head <= 20; head += 1) speaker.broadcast.publish(appended(head - 1, head));
      speaker.broadcast.publish(stop(TURN));
      await hearer.heardOf(stop(TURN));
      let head = 0;
      for (const each of hearer.heard) {
        if (each.type !== 'appended') continue;
        assert.ok(each.after <= head, `no notice covers the events after ${head}`);
        head = Math.max(head, each.head);
      }
      assert.equal(head, 20);
    }),
    on(
      'B2',
      'arguments arrive whole and per call, and the latest progress before the result',
      async (speaker, hearer) => {
        const written = new Map([
          ['k1', '{"from":"a","to":"b"}'],
          ['k2', '{"from":"c"}'],
        ]);
        for (let at = 0; at < 21; at += 1) {
          for (const [call, args] of written) {
            const text = args.slice(at, at + 1);
            if (text)
              speaker.broadcast.publish(told({ type: 'arguments', call, name: 'copy', index: at, text }));
          }
        }
        for (const call of written.keys()) {
          for (let done = 1; done <= 20; done += 1)
            speaker.broadcast.publish(told({ type: 'progress', call, name: 'copy', done }));
          speaker.broadcast.publish(
            told({ type: 'result', call, name: 'copy', outcome: 'done', text: 'ok' }),
          );
        }
        speaker.broadcast.publish(stop(TURN));
        await hearer.heardOf(stop(TURN));
        for (const [call, args] of written) {
          const heard = hearer.heard.flatMap((each) => ('call' in each && each.call === call ? [each] : []));
          const pieces = heard.flatMap((each) => (each.type === 'arguments' ? [each] : []));
          assert.equal(pieces.map(({ text }) => text).join(''), args);
          let index = 0;
          for (const piece of pieces) {
            assert.equal(piece.index, index, 'the index differs from that of the first piece');
            index += piece.text.length;
          }
          const [last, end] = heard.slice(-2);
          assert.deepEqual([last?.type === 'progress' && last.done, end?.type], [20, 'result']);
        }
      },
    ),
    on('B2', 'states arrive in order, the latest always', async (speaker, hearer) => {
      const places = [A, B, address('a', 'other')];
      for (let at = 1; at <= 20; at += 1) {
        for (const place of places) speaker.broadcast.publish(state(`working.${at}`, { ...place, at }));
      }
      speaker.broadcast.publish(stop(TURN));
      await hearer.heardOf(stop(TURN));
      for (const of of places) {
        const times = hearer.heard.flatMap((each) =>
          each.type === 'state' && addressKey(each) === addressKey(of) ? [each.at] : [],
        );
        assert.equal(times.at(-1), 20);
        assert.deepEqual(
          times,
          times.toSorted((a, b) => a - b),
        );
      }
    }),
  ];
}

function isolation(on: AddCase): ConformanceCase[] {
  return [
    on('B3', 'publishing calls no listener and leaves the notice unchanged', async (speaker, hearer) => {
      const own = delta(0, 'unchanged');
      speaker.broadcast.publish(own);
      speaker.broadcast.publish(delta(1, ', and more'));
      assert.deepEqual(hearer.heard, [], 'a listener was called while publishing');
      assert.equal(own.text, 'unchanged', 'the notice of the publisher was changed');
      speaker.broadcast.publish(stop(TURN));
      await hearer.heardOf(stop(TURN));
    }),
    on('B3', 'a listener that throws does not affect the others', async (speaker, hearer, third) => {
      hearer.broadcast.subscribe(() => {
        throw new Error('thrown by a listener');
      });
      const late: Notice[] = [];
      hearer.broadcast.subscribe((notice) => late.push(notice));
      for (const number of [1, 2]) speaker.broadcast.publish(stop(turnId(A, number)));
      await hearer.heardOf(stop(turnId(A, 2)));
      await third.heardOf(stop(turnId(A, 2)));
      await hearer.quiet();
      assert.deepEqual(late, [stop(turnId(A, 1)), stop(turnId(A, 2))]);
    }),
  ];
}

function closing(on: AddCase): ConformanceCase[] {
  return [
    on('B4', 'a closed member receives nothing and publishes nothing', async (speaker, hearer, third) => {
      speaker.broadcast.publish(stop(turnId(A, 1)));
      await hearer.heardOf(stop(turnId(A, 1)));
      await hearer.broadcast.close();
      hearer.broadcast.publish(stop(turnId(B, 1)));
      speaker.broadcast.publish(stop(turnId(A, 2)));
      await third.heardOf(stop(turnId(A, 2)));
      await hearer.quiet();
      assert.deepEqual(hearer.heard, [stop(turnId(A, 1))]);
      assert.deepEqual(third.heard, [stop(turnId(A, 1)), stop(turnId(A, 2))]);
    }),
    on('B4', 'a second close does nothing', async (_, hearer) => {
      await hearer.broadcast.close();
      await hearer.broadcast.close();
    }),
  ];
}

function address(agent: string, tenant = 'default'): ActorAddress {
  return ActorAddress.parse({ tenant, conversation: 'c1', agent });
}

function delta(index: number, text: string, place: Partial<TextNote> = {}): TextNote {
  return { ...told({ type: 'text', index, text }), ...place } as TextNote;
}

function told(what: Told): LiveNote {
  return { ...A, turn: TURN, attempt: 1, step: 1, round: 1, ...what };
}

/** Notes of each kind that a `recalled` may have. */
function toldAgain(): LiveNote[] {
  return [
    state('working.acting', { event: 'MODEL_CALLED' }),
    delta(0, 'so far'),
    told({ type: 'called', call: 'k1', name: 'search', args: '{}' }),
  ];
}

function appended(after: number, head: number): Notice {
  return { type: 'appended', tenant: A.tenant, conversation: A.conversation, after, head };
}

function state(path: string, more: Partial<StateNote> = {}): StateNote {
  return { type: 'state', ...A, turn: TURN, state: path, event: 'PINNED', at: 1, doing: [], ...more };
}

function stop(turn: TurnId): Notice {
  return { type: 'stop', address: A, turn };
}

function deltasIn(notices: readonly Notice[]): TextNote[] {
  return notices.flatMap((each) => (each.type === 'text' ? [each] : []));
}

type Member = ReturnType<typeof createMember>;

/** A member that records the notices it receives. */
function createMember(broadcast: Broadcast) {
  const heard: Notice[] = [];
  const checks = new Set<() => void>();
  broadcast.subscribe((notice) => {
    heard.push(notice);
    for (const check of checks) check();
  });
  return {
    broadcast,
    heard,
    /** Resolves when exactly this notice has arrived. */
    heardOf(wanted: Notice): Promise<void> {
      return new Promise((resolve) => {
        const text = JSON.stringify(wanted);
        function check(): void {
          if (!heard.some((each) => JSON.stringify(each) === text)) return;
          checks.delete(check);
          resolve();
        }
        checks.add(check);
        check();
      });
    },
    /** Resolves when notices delivered together with the last one have arrived too. */
    quiet: () => new Promise<void>((resolve) => setImmediate(resolve)),
  };
}
