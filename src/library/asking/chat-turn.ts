import type {
  ArgumentsNote,
  CalledNote,
  DroppedNote,
  LivePlace,
  ProgressNote,
  ReasoningNote,
  ResultNote,
  StepBody,
  TextNote,
  ToolOutcome,
  ToolResultBody,
  VoidNote,
} from '../../events/index.ts';
import type { ChatBlock, ChatCall, ChatChange } from './chat-change.ts';

type Owner = Pick<ChatBlock, 'conversation' | 'agent' | 'turn'>;
type Place = Pick<LivePlace, 'attempt' | 'round' | 'step'>;

/** Words that were shown, in one block or, if others came between, several. */
interface Shown {
  ids: string[];
  said: string;
  isOpen: boolean;
}

interface ShownCall {
  id: string;
  /** Its arguments so far, as they were told. */
  written: string;
  /** What of them was shown. */
  args: string;
  isReady: boolean;
  outcome: ToolOutcome | null;
}

interface Step {
  /** The model call that it comes from. 0: none is known yet. */
  round: number;
  text: Shown | null;
  reasoning: Shown | null;
  /** By the id of the model server. */
  calls: Map<string, ShownCall>;
  /** Calls in the order of the step. */
  order: string[];
}

/** What was shown of one running turn. Texts keep the order of their steps; the words of a step may follow its calls. */
export class ChatTurn {
  readonly #owner: Owner;
  /** The calls that wait for approval, by the id of the request. Shared by the turns of a chat. */
  readonly #asked: Map<string, string>;
  readonly #steps = new Map<number, Step>();
  readonly #used = new Map<string, number>();
  #attempt = 0;
  /** Number of steps whose events have come. */
  #committed = 0;
  /**
   * Why the words of the last model call do not count, by step. They stay until another call begins, because the end of a
   * failed or stopped turn keeps them.
   */
  readonly #failed = new Map<number, string>();

  constructor(owner: Owner, asked: Map<string, string>) {
    this.#owner = owner;
    this.#asked = asked;
  }

  words(note: TextNote | ReasoningNote): ChatChange[] {
    const { step, changes } = this.#enter(note);
    if (!step) return changes;
    const { type, index, text } = note;
    let shown = step[type];
    if (shown && index === 0 && !shown.said.startsWith(text) && !text.startsWith(shown.said)) {
      changes.push(voided(shown.ids, 'the answer begins anew'));
      shown = step[type] = null;
    }
    if (index > (shown?.said.length ?? 0)) return changes;
    const news = text.slice((shown?.said.length ?? 0) - index);
    if (news === '') return changes;
    if (type === 'text') changes.push(...close(step.reasoning));
    changes.push(...this.#grow(step, note.step, type, news));
    return changes;
  }

  write(note: ArgumentsNote): ChatChange[] {
    const { step, changes } = this.#enter(note);
    if (!step) return changes;
    changes.push(...close(step.reasoning));
    const shown = this.#begin(step, note.step, note, changes);
    const { written } = shown;
    if (shown.isReady || note.index > written.length) return changes;
    // Cutting copies, so what only grows is not cut.
    shown.written = (note.index === written.length ? written : written.slice(0, note.index)) + note.text;
    return [...changes, ...addArgs(shown, shown.written)];
  }

  drop(note: DroppedNote): ChatChange[] {
    const { step, changes } = this.#enter(note);
    return step ? [...changes, ...dropCall(step, note.call)] : changes;
  }

  run(note: CalledNote): ChatChange[] {
    const { step, changes } = this.#enter(note);
    if (!step) return changes;
    changes.push(...close(step.reasoning), ...close(step.text));
    const shown = this.#begin(step, note.step, note, changes);
    if (!shown.isReady && isWhole(note.args)) changes.push(...ready(shown, note.args));
    return changes;
  }

  progress(note: ProgressNote): ChatChange[] {
    const { step, changes } = this.#enter(note);
    const shown = step?.calls.get(note.call);
    if (!shown || shown.outcome !== null) return changes;
    const { text, done, total } = note;
    changes.push({ type: 'call.progress', id: shown.id, text, done, total });
    return changes;
  }

  /** A long result is told when its event comes: only that has it whole. */
  result(note: ResultNote): ChatChange[] {
    const { step, changes } = this.#enter(note);
    if (!step || note.text.endsWith('…')) return changes;
    const shown = this.#begin(step, note.step, note, changes);
    if (!shown.isReady) return changes;
    return [...changes, ...end(shown, note.outcome, note.text)];
  }

  void(note: VoidNote): ChatChange[] {
    if (note.attempt < this.#attempt) return [];
    if (note.all) return this.#drop([...this.#steps.keys()], note.reason);
    if (note.round >= (this.#steps.get(note.step)?.round ?? 0)) this.#failed.set(note.step, note.reason);
    return [];
  }

  commitStep({ index, content, calls }: StepBody): ChatChange[] {
    const number = index + 1;
    this.#committed = Math.max(this.#committed, number);
    const step = this.#stepAt(number);
    const changes = [...close(step.reasoning), ...this.#complete(step, number, content)];
    const lost = [...step.calls].filter(([id]) => !calls.some((call) => call.id === id));
    if (lost.length > 0)
      changes.push(
        voided(
          lost.map(([, { id }]) => id),
          'the call was not made',
        ),
      );
    for (const [id] of lost) step.calls.delete(id);
    step.order = calls.map(({ id }) => id);
    if (calls.some(({ id }) => !step.calls.has(id))) changes.push(...this.#dropAfter(number));
    for (const { id, name, args } of calls) {
      const shown = this.#begin(step, number, { call: id, name }, changes);
      if (!shown.isReady) changes.push(...ready(shown, args));
    }
    return changes;
  }

  commitResult({ call, name, outcome, content }: ToolResultBody): ChatChange[] {
    const step = this.#stepAt(Math.max(1, this.#committed));
    const changes: ChatChange[] = [];
    const shown = this.#begin(step, Math.max(1, this.#committed), { call, name }, changes);
    return [...changes, ...end(shown, outcome, content)];
  }

  commitReply(content: string): ChatChange[] {
    const number = this.#committed + 1;
    this.#committed = number;
    const step = this.#stepAt(number);
    return [...close(step.reasoning), ...this.#complete(step, number, content)];
  }

  /** Remembers which call a request is about, and gives its id: the event is named after the place of the call. */
  noteRequest(event: string, request: string): string | undefined {
    const [, step, index] = /:asked:(\d+)\.(\d+)$/.exec(event) ?? [];
    const found = this.#steps.get(Number(step) + 1);
    const call = found?.calls.get(found.order[Number(index)] ?? '');
    if (call) this.#asked.set(request, call.id);
    return call?.id;
  }

  /** `partial`: what the agent had said when its turn was stopped. */
  end(partial: string, reason: string): ChatChange[] {
    const ids: string[] = [];
    const changes = partial === '' ? [] : this.commitReply(partial);
    for (const [number, step] of this.#steps) {
      changes.push(...close(step.reasoning));
      if (number > this.#committed) ids.push(...idsOf(step));
    }
    return ids.length > 0 ? [...changes, voided(ids, reason)] : changes;
  }

  /** The step of a note, after what the note makes void. No step: the note itself is void or late. */
  #enter({ attempt, round, step: number }: Place): { step: Step | null; changes: ChatChange[] } {
    const changes: ChatChange[] = [];
    if (attempt < this.#attempt || number <= this.#committed) return { step: null, changes };
    if (attempt > this.#attempt) {
      if (this.#attempt > 0) changes.push(...this.#drop([...this.#steps.keys()], 'the turn begins anew'));
      this.#attempt = attempt;
    }
    const known = this.#steps.get(number);
    if (known && round < known.round) return { step: null, changes };
    if (known && round > known.round && known.round > 0)
      changes.push(...this.#drop([number], this.#failed.get(number) ?? 'the model is called anew'));
    const step = this.#stepAt(number);
    step.round = round;
    return { step, changes };
  }

  #stepAt(number: number): Step {
    const known = this.#steps.get(number);
    if (known) return known;
    const step: Step = { round: 0, text: null, reasoning: null, calls: new Map(), order: [] };
    this.#steps.set(number, step);
    return step;
  }

  /** Forgets steps that are not in the log. */
  #drop(numbers: number[], reason: string): ChatChange[] {
    const dropped = numbers.filter((number) => number > this.#committed);
    const ids = dropped.flatMap((number) => idsOf(this.#steps.get(number)));
    for (const number of dropped) {
      this.#steps.delete(number);
      this.#failed.delete(number);
    }
    return ids.length > 0 ? [voided(ids, reason)] : [];
  }

  /** Voids what was shown of later steps, so that what is missing of this one comes before it. */
  #dropAfter(number: number): ChatChange[] {
    const later = [...this.#steps.keys()].filter((other) => other > number);
    return this.#drop(later, 'something before it was missed');
  }

  /** The text of a step as the log has it: what is missing is added, what differs is void. */
  #complete(step: Step, number: number, content: string): ChatChange[] {
    const { text } = step;
    const changes: ChatChange[] = [];
    if (text && !content.startsWith(text.said)) {
      changes.push(voided(text.ids, 'it was changed before it was stored'));
      step.text = null;
    }
    const news = content.slice(step.text?.said.length ?? 0);
    if (news !== '') changes.push(...this.#dropAfter(number), ...this.#grow(step, number, 'text', news));
    changes.push(...close(step.text));
    return changes;
  }

  #grow(step: Step, number: number, kind: ChatBlock['kind'], text: string): ChatChange[] {
    const changes: ChatChange[] = [];
    const shown = (step[kind] ??= { ids: [], said: '', isOpen: false });
    let id = shown.isOpen ? shown.ids.at(-1) : undefined;
    if (id === undefined) {
      id = this.#newId(`${this.#owner.turn}/${number}${kind === 'text' ? '' : '/thinking'}`);
      changes.push({ type: 'block.start', block: { id, kind, ...this.#owner, step: number } });
      shown.ids.push(id);
      shown.isOpen = true;
    }
    shown.said += text;
    changes.push({ type: 'block.delta', id, text });
    return changes;
  }

  #begin(
    step: Step,
    number: number,
    { call, name }: { call: string; name: string },
    changes: ChatChange[],
  ): ShownCall {
    const known = step.calls.get(call);
    if (known) return known;
    const approved = this.#asked.get(call);
    const id = approved ?? this.#newId(`${this.#owner.turn}/${number}/${call}`);
    const shown: ShownCall = { id, written: '', args: '', isReady: approved !== undefined, outcome: null };
    step.calls.set(call, shown);
    const started: ChatCall = { id, name, ...this.#owner, step: number };
    if (approved === undefined) changes.push({ type: 'call.start', call: started });
    return shown;
  }

  /** Ids that were void are not used again. */
  #newId(id: string): string {
    const times = (this.#used.get(id) ?? 0) + 1;
    this.#used.set(id, times);
    return times === 1 ? id : `${id}~${times}`;
  }
}

function close(shown: Shown | null): ChatChange[] {
  const id = shown?.ids.at(-1);
  if (!shown?.isOpen || id === undefined) return [];
  shown.isOpen = false;
  return [{ type: 'block.end', id }];
}

function dropCall({ calls }: Step, id: string): ChatChange[] {
  const known = calls.get(id);
  return known && calls.delete(id) ? [voided([known.id], 'the model did not finish the call')] : [];
}

function addArgs(call: ShownCall, args: string): ChatChange[] {
  if (!args.startsWith(call.args) || args.length === call.args.length) return [];
  const text = args.slice(call.args.length);
  call.args = args;
  return [{ type: 'call.delta', id: call.id, text }];
}

/** Arguments that differ from what was shown of them come whole, in `args` only. */
function ready(call: ShownCall, args: string): ChatChange[] {
  const changes = addArgs(call, args);
  call.isReady = true;
  call.args = args;
  return [...changes, { type: 'call.ready', id: call.id, args }];
}

function end(call: ShownCall, outcome: ToolOutcome, text: string): ChatChange[] {
  if (call.outcome === outcome) return [];
  call.outcome = outcome;
  return [{ type: 'call.result', id: call.id, outcome, text }];
}

function isWhole(args: string): boolean {
  try {
    JSON.parse(args);
    return true;
  } catch {
    return false;
  }
}

function idsOf(step: Step | undefined): string[] {
  if (!step) return [];
  const blocks = [step.text, step.reasoning].flatMap((shown) => shown?.ids ?? []);
  return [...blocks, ...[...step.calls.values()].map(({ id }) => id)];
}

function voided(ids: string[], reason: string): ChatChange {
  return { type: 'void', ids, reason };
}
