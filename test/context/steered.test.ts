import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  beginTurn,
  createView,
  eventText,
  foldAhead,
  foldEvent,
  forkView,
  type View,
} from '../../src/context/index.ts';
import type { AgentId, Event, EventDraft, TurnId } from '../../src/events/index.ts';

const BO = { kind: 'agent', id: 'bo', name: 'Bo' } as const;
const TURN = 'c:bo:1' as TurnId;
const STARTED = { live: { time: 'now' }, join: 'full', baseline: 'none' } as const;
const count = (text: string) => Math.ceil(text.length / 4);

/** A message: its author, its words, and whether it addresses the agent. */
const words = fc.record({
  who: fc.constantFrom('Ana', 'Cy', 'di'),
  text: fc.oneof(fc.string({ maxLength: 12 }), fc.constantFrom('[Ana] no', '<msg-1>', 'hello')),
  toBo: fc.boolean(),
  own: fc.constantFrom('started', 'other', 'other', 'other'),
});
/** A step of the turn: its results, the messages that arrived since, and those that it takes in. */
const step = fc.record({ since: fc.array(words, { maxLength: 4 }), calls: fc.nat(2), taken: fc.nat(4) });
const story = fc.record({
  before: fc.array(words, { minLength: 1, maxLength: 4 }),
  steps: fc.array(step, { minLength: 1, maxLength: 4 }),
  late: fc.array(words, { maxLength: 3 }),
});

type Words = typeof words extends fc.Arbitrary<infer T> ? T : never;
type Story = typeof story extends fc.Arbitrary<infer T> ? T : never;

function logged(draft: EventDraft, seq: number): Event {
  return {
    ...draft,
    tenant: 't',
    conversation: 'c',
    seq,
    at: seq * 60_000,
    tokens: count(eventText(draft)),
  } as Event;
}

function said({ who, text, toBo }: Words, seq: number): Event {
  const author =
    who === 'di' ? { kind: 'agent', id: who, name: who } : { kind: 'user', id: `u${who}`, name: who };
  const to = toBo ? ['bo'] : [];
  return logged(
    { id: `m${seq}`, author, to, kind: 'message', body: { content: `${text}.` } } as EventDraft,
    seq,
  );
}

function own(part: string, kind: string, body: object): EventDraft {
  return { id: `${TURN}:${part}`, author: BO, to: [], turn: TURN, kind, body } as unknown as EventDraft;
}

/** The turn as its process saw it, and the final log. `snapshots`: the prompt of each step. */
function play({ before, steps, late }: Story): { warm: View; log: Event[]; snapshots: string[] } {
  const log: Event[] = before.map((each, index) => said(each, index + 1));
  const upTo = log.length;
  const warm = createView('bo' as AgentId, 'secret');
  for (const event of log) foldEvent(warm, event);
  const inputs = log.filter(({ to }) => to.length > 0).map(({ seq }) => seq);
  beginTurn(warm, { id: TURN, upTo, inputs, ...STARTED });
  const started = own('started', 'turn.started', { upTo, inputs, ...STARTED });
  let isStarted = false;
  let reach = upTo;
  const outputs: EventDraft[] = [];
  const snapshots: string[] = [];
  for (const [at, { since, calls, taken }] of steps.entries()) {
    for (const each of since) {
      if (each.own === 'started' && !isStarted) {
        log.push(logged(started, log.length + 1));
        isStarted = true;
      }
      log.push(said(each, log.length + 1));
    }
    const waiting = log.filter(({ seq, to }) => seq > reach && to.length > 0).slice(0, taken);
    const last = waiting.at(-1);
    if (at > 0 && last) {
      for (const event of log.slice(warm.upTo, last.seq)) foldEvent(warm, event);
      reach = last.seq;
      const body = { step: at, upTo: reach, inputs: waiting.map(({ seq }) => seq) };
      outputs.push(own(`steered:${at}`, 'turn.steered', body));
    }
    for (const draft of outputs) foldAhead(warm, draft, count);
    snapshots.push(forkView(warm).chain);
    const asked = Array.from({ length: calls }, (_, index) => ({
      id: `k${at}.${index}`,
      name: 'x',
      args: '{}',
    }));
    outputs.push(own(`step:${at}`, 'step', { index: at, content: `step ${at}`, calls: asked }));
    for (const [index, { id }] of asked.entries()) {
      const body = { call: id, name: 'x', outcome: 'done', content: `r${at}.${index}` };
      outputs.push(own(`result:${at}.${index}`, 'tool.result', body));
    }
  }
  for (const draft of outputs) foldAhead(warm, draft, count);
  if (!isStarted) log.push(logged(started, log.length + 1));
  for (const each of late) log.push(said(each, log.length + 1));
  for (const draft of outputs) log.push(logged(draft, log.length + 1));
  log.push(
    logged(own('end', 'turn.done', { covers: inputs, steps: steps.length, usage: {} }), log.length + 1),
  );
  return { warm, log, snapshots };
}

function shown(view: View) {
  const { chain, tokens, bytes, pending, slots } = view;
  const messages = slots.map(({ message }) => message);
  return { chain, tokens, bytes, pending: pending.map(({ seq }) => seq), messages };
}

test('a steered turn is the same from the log as while it ran, and so is the next', () => {
  let steered = 0;
  fc.assert(
    fc.property(story, (plot) => {
      const { warm, log, snapshots } = play(plot);
      steered += log.filter(({ kind }) => kind === 'turn.steered').length;
      const cold = createView('bo' as AgentId, 'secret');
      const seen: string[] = [];
      for (const event of log) {
        if (event.kind === 'step') seen.push(cold.chain);
        foldEvent(cold, event);
      }
      expect(seen).toEqual(snapshots);
      for (const event of log) foldEvent(warm, event);
      expect(shown(warm)).toEqual(shown(cold));
      for (const view of [warm, cold]) {
        const inputs = view.pending.filter(({ to }) => to.length > 0).map(({ seq }) => seq);
        beginTurn(view, { id: 'c:bo:2' as TurnId, upTo: log.length, inputs, ...STARTED });
      }
      expect(shown(warm)).toEqual(shown(cold));
      // V2: nothing is lost and nothing appears twice.
      const rendered = cold.slots.flatMap(({ message }) => (message.role === 'user' ? message.seqs : []));
      const words = log.filter(({ kind }) => kind === 'message').map(({ seq }) => seq);
      expect(rendered.filter((seq) => seq > 0).toSorted((a, b) => a - b)).toEqual(words);
    }),
    { numRuns: 400 },
  );
  expect(steered).toBeGreaterThan(0);
});
