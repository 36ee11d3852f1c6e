import fc from 'fast-check';
import type { CompactionPolicy, Room } from '../../src/context/index.ts';
import type { AgentId, Author, EventDraft } from '../../src/events/index.ts';
import { LogPlayer, own, type OpenTurn } from './log-player.ts';

export const AGENTS = ['ada', 'bob', 'cyd'] as const;
type Agent = (typeof AGENTS)[number];

/** Possible events of a conversation, as data that fast-check can shrink. */
export type Move =
  | { do: 'human'; who: number; to: Agent[]; text: string }
  | { do: 'system'; to: Agent[]; text: string }
  | { do: 'stray'; agent: Agent; to: Agent[]; text: string }
  | { do: 'fail'; agent: Agent; text: string }
  | { do: 'call'; agent: Agent; calls: number; text: string }
  | { do: 'result'; agent: Agent; pick: number }
  | { do: 'orphan'; agent: Agent }
  | { do: 'handoff'; agent: Agent; to: Agent }
  | { do: 'turn'; agent: Agent; turn: Turn };

interface Turn {
  before: Move[];
  /** A step without calls is a rejected answer, with a note to the next step. */
  steps: { calls: number; text: string; late: Move[]; crashed: boolean }[];
  ending: 'reply' | 'silent' | 'failed' | 'aborted' | 'never';
  text: string;
  /** Moves between the request and the commit. */
  during: Move[];
}

const PEOPLE: Author[] = [
  { kind: 'user', id: 'u', name: 'Uma' },
  { kind: 'user', id: 'v', name: 'Vik' },
  { kind: 'user', id: 'bridge', name: 'Wim' },
];

const agent = fc.constantFrom(...AGENTS);
const to = fc.uniqueArray(agent, { maxLength: 3 });
const someText = fc.oneof(
  { weight: 8, arbitrary: fc.constant('x') },
  { weight: 1, arbitrary: fc.constant(' ') },
);

const quietMove: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('human' as const), who: fc.nat(2), to, text: someText }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('system' as const), to, text: someText }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stray' as const), agent, to, text: someText }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('fail' as const), agent, text: someText }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('call' as const),
      agent,
      calls: fc.integer({ min: 1, max: 3 }),
      text: someText,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('result' as const), agent, pick: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('orphan' as const), agent }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('handoff' as const), agent, to: agent }) },
);

const few = fc.array(quietMove, { maxLength: 3 });
const turn: fc.Arbitrary<Turn> = fc.record({
  before: few,
  steps: fc.array(
    fc.record({ calls: fc.integer({ min: 0, max: 3 }), text: someText, late: few, crashed: fc.boolean() }),
    { maxLength: 3 },
  ),
  ending: fc.constantFrom('reply', 'reply', 'reply', 'silent', 'failed', 'aborted', 'never'),
  text: someText,
  during: few,
});

export const moves: fc.Arbitrary<Move[]> = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: quietMove },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('turn' as const), agent, turn }) },
  ),
  { maxLength: 25 },
);

type CompactionOptions = { policy: CompactionPolicy; room: Room };

/** Plays the moves. Every text holds a unique word, `w<n>z`, so that tests can find it. */
export class RandomRun {
  readonly player = new LogPlayer('cyd');
  readonly #filler: string;
  readonly #compaction: (n: number) => CompactionOptions | null;
  readonly #open = new Map<Agent, { id: string; name: string }[]>();
  #words = 0;
  #callIds = 0;

  /** `compaction` is called before every request; `filler` lengthens the texts. */
  constructor(options: { filler?: string; compaction?: (request: number) => CompactionOptions | null } = {}) {
    this.#filler = options.filler ?? '';
    this.#compaction = options.compaction ?? (() => null);
  }

  play(all: readonly Move[]): this {
    for (const move of all) this.#make(move);
    return this;
  }

  #text(kind: string): string {
    return kind.trim() === '' ? kind : `word w${(this.#words += 1)}z${this.#filler}`;
  }

  #make(move: Move): void {
    const { player } = this;
    switch (move.do) {
      case 'human':
        player.append({
          author: PEOPLE[move.who] as Author,
          to: ids(move.to),
          ...said(this.#text(move.text)),
        });
        return;
      case 'system':
        player.append({
          author: { kind: 'system', id: 'troupe', name: 'Troupe' },
          to: ids(move.to),
          ...said(this.#text(move.text)),
        });
        return;
      case 'stray':
        player.append({ ...own(move.agent), to: ids(move.to), ...said(this.#text(move.text)) });
        return;
      case 'fail':
        player.append({
          ...own(move.agent),
          kind: 'turn.failed',
          body: { covers: [], code: 'provider_failed', message: '', partial: this.#text(move.text) },
        });
        return;
      case 'call':
        player.append({ ...own(move.agent), ...this.#step(move.agent, move.calls, move.text, 0, true) });
        return;
      case 'result': {
        const open = this.#open.get(move.agent) ?? [];
        const [call] = open.splice(move.pick % Math.max(1, open.length), 1);
        if (call) player.append({ ...own(move.agent), ...this.#result(call) });
        return;
      }
      case 'orphan':
        player.append({
          ...own(move.agent),
          ...this.#result({ id: `nobody-${(this.#words += 1)}`, name: 'look' }),
        });
        return;
      case 'handoff':
        if (move.to === move.agent) return;
        player.append({
          ...own(move.agent),
          to: ids([move.to]),
          kind: 'handoff',
          body: { summary: this.#summary() },
        });
        return;
      case 'turn':
        this.#turn(move.agent, move.turn);
    }
  }

  #turn(name: Agent, { before, steps, ending, text, during }: Turn): void {
    const { player } = this;
    const open = player.pin(name, () => this.play(before));
    if (!open) return;
    player.request(open, { compaction: this.#compaction(player.sent.length) });
    for (const [index, step] of steps.entries()) {
      const { id } = open.turn;
      const draft = this.#step(name, step.calls, step.text, index, false);
      if (step.calls > 0 || step.text.trim() !== '')
        open.outputs.push({ ...own(name, id), id: `${id}:step:${index}`, ...draft } as EventDraft);
      if (step.calls === 0)
        open.outputs.push({ ...own(name, id), id: `${id}:note:${index}`, ...this.#note() } as EventDraft);
      for (const [at, call] of (draft.body as { calls: { id: string; name: string }[] }).calls.entries()) {
        open.outputs.push({
          ...own(name, id),
          id: `${id}:result:${index}.${at}`,
          ...this.#result(call),
        } as EventDraft);
      }
      this.play(step.late);
      player.request(open, { crashed: step.crashed, compaction: this.#compaction(player.sent.length) });
    }
    this.play(during);
    // A turn that never ends leaves its start in the log but no outputs: the next turn finds them missing.
    if (ending !== 'never') player.commit(open, this.#ending(open, ending, text));
    else player.views.delete(name);
  }

  #ending(open: OpenTurn, ending: Exclude<Turn['ending'], 'never'>, text: string): EventDraft[] {
    const { id } = open.turn;
    const draft = (part: string) => ({ ...own(open.agent, id), id: `${id}:${part}` });
    const covers = open.turn.inputs;
    const end = (() => {
      switch (ending) {
        case 'failed':
          return {
            kind: 'turn.failed',
            body: { covers, code: 'provider_failed', message: '', partial: this.#text(text) },
          };
        case 'aborted':
          return { kind: 'turn.aborted', body: { covers, by: 'u', partial: this.#text(text) } };
        case 'silent':
        case 'reply':
          return { kind: 'turn.done', body: { covers, steps: 1, usage: {} } };
      }
    })();
    const reply =
      ending === 'reply' && text.trim() !== '' ? [{ ...draft('reply'), ...said(this.#text(text)) }] : [];
    return [...reply, { ...draft('end'), ...end }] as EventDraft[];
  }

  #step(name: Agent, calls: number, text: string, index: number, stays: boolean) {
    const made = Array.from({ length: calls }, () => ({
      id: `k${(this.#callIds += 1)}`,
      name: 'look',
      args: JSON.stringify({ at: this.#text('x') }),
    }));
    if (stays) this.#open.set(name, [...(this.#open.get(name) ?? []), ...made]);
    return { kind: 'step' as const, body: { index, content: this.#text(text), calls: made } };
  }

  #note() {
    return { kind: 'injection' as const, body: { content: `word w${(this.#words += 1)}z`, oneStep: true } };
  }

  #result({ id, name }: { id: string; name: string }) {
    const body = { call: id, name, outcome: 'done' as const, content: this.#text('x') };
    return { kind: 'tool.result' as const, body };
  }

  #summary() {
    return {
      goal: this.#text('x'),
      done: '',
      state: '',
      next: '',
      openQuestions: [],
      artifacts: [],
      why: '',
    };
  }
}

function said(content: string) {
  return { kind: 'message' as const, body: { content } };
}

function ids(names: readonly string[]): AgentId[] {
  return names as AgentId[];
}
