import { TroupeError } from '../../base/errors.ts';
import { type TenantId, type TurnId, agentAuthor } from '../../events/index.ts';
import type { Store } from '../../store/store.ts';
import { journalKey, type JournalEntry, type TurnRun, type ModelAnswer } from '../attempt/turn-run.ts';
import type { Redaction } from '../../events/redaction.ts';
import type { CallEffects } from '../tasks/call-effects.ts';

/**
 * The journal of a step. A former holder that hung may still journal an answer that ignores the events which its successor
 * takes into the step, and then run its calls. So a process that resumes a turn and takes events first closes the step's key
 * and continues under the next key.
 *  J1  A step is journalled under the first of its keys that is not closed.
 *  J2  A process chooses the key once per step, before it reads the log. If it later finds the key closed, it no longer holds
 *      the lease and makes none of the calls.
 */
interface Closed {
  closed: true;
}

type Kept = JournalEntry | Closed;

function keyOf(turn: TurnId, step: number, index: number): string {
  return index === 0 ? journalKey(turn, step) : `${journalKey(turn, step)}/steered.${index}`;
}

/** The answer to a step, or the ending of the turn; null if neither is journalled yet. */
export async function readStep(
  store: Pick<Store, 'readJournal'>,
  tenant: TenantId,
  turn: TurnId,
  step: number,
): Promise<JournalEntry | null> {
  return (await findKey(store, tenant, turn, step)).entry;
}

/** `readStep` for the present step of a resumed turn. The first call in a step chooses the key. */
export async function openStep(run: TurnRun): Promise<JournalEntry | null> {
  const { deps, live, turn, step, meanwhile } = run;
  const { tenant } = live.address;
  if (meanwhile.key?.step === step) {
    const kept = parse(await deps.store.readJournal(tenant, keyOf(turn.id, step, meanwhile.key.index)));
    return kept === null ? null : stillOpen(run, kept);
  }
  const { index, entry } = await findKey(deps.store, tenant, turn.id, step);
  meanwhile.key = { step, index };
  return entry;
}

/** Writes the entry of the present step, unless one exists. Returns the stored entry. */
export async function journalStep(run: TurnRun, entry: JournalEntry): Promise<JournalEntry> {
  return stillOpen(run, await write(run, redacted(run, entry)));
}

/** Journals the answer that seemed to end the turn, because the turn continues. */
export async function writeKept(run: TurnRun): Promise<void> {
  const { answer } = run.meanwhile.kept;
  run.meanwhile.kept.answer = null;
  if (answer) await write(run, answer);
}

/** Closes the key before a resumed turn takes events. Returns false if the step was answered without them. */
export async function closeStep(run: TurnRun): Promise<boolean> {
  const { meanwhile, step } = run;
  const kept = await write(run, { closed: true });
  if (!('closed' in kept)) return false;
  meanwhile.key = { step, index: indexOf(run) + 1 };
  return true;
}

async function write(run: TurnRun, entry: Kept): Promise<Kept> {
  const { deps, live, turn, step } = run;
  const { store, clock } = deps;
  const key = keyOf(turn.id, step, indexOf(run));
  const text = JSON.stringify(entry);
  return JSON.parse(await store.journal(live.address.tenant, key, text, clock.now())) as Kept;
}

/** Redacts an entry before it is journalled, because the turn itself uses the journalled answer. */
function redacted({ deps, runtime }: TurnRun, entry: JournalEntry): JournalEntry {
  return deps.redaction && 'text' in entry ? redactAnswer(deps.redaction, runtime.profile, entry) : entry;
}

/** Index of the key; 0 for a turn that was never resumed, which has no former holder. */
function indexOf({ meanwhile: { key }, step }: TurnRun): number {
  return key?.step === step ? key.index : 0;
}

function stillOpen({ turn, step }: TurnRun, kept: Kept): JournalEntry {
  if (!('closed' in kept)) return kept;
  throw new TroupeError('lease_lost', `step ${step} of turn ${turn.id} was steered by another process`);
}

async function findKey(
  store: Pick<Store, 'readJournal'>,
  tenant: TenantId,
  turn: TurnId,
  step: number,
): Promise<{ index: number; entry: JournalEntry | null }> {
  for (let index = 0; ; index++) {
    const kept = parse(await store.readJournal(tenant, keyOf(turn, step, index)));
    if (kept === null || !('closed' in kept)) return { index, entry: kept };
  }
}

function parse(stored: string | null): Kept | null {
  return stored === null ? null : (JSON.parse(stored) as Kept);
}

interface Speaker {
  id: string;
  name: string;
}

/** Redacts an answer before it is journalled, as the step or the message that it becomes. */
export function redactAnswer(redaction: Redaction, agent: Speaker, answer: ModelAnswer): ModelAnswer {
  const { text, original, calls, reasoning, fault } = answer;
  const data = 'data' in answer ? { data: answer.data } : {};
  const kind = calls.length > 0 ? 'step' : 'message';
  const said = { text, calls, ...(reasoning && { reasoning }), ...data };
  const where = { kind, author: agentAuthor(agent) } as const;
  return {
    ...answer,
    ...redaction.body(said, where),
    ...(original !== undefined && { original: redaction.text(original, where) }),
    // The fault may quote the answer.
    ...(fault && {
      fault: {
        ...fault,
        note: fault.note && redaction.text(fault.note, where),
        message: redaction.text(fault.message, where),
      },
    }),
  };
}

/** Redacts the result and the effects of a call before they enter the ledger. */
export function redactCall<T extends { text: string; effects?: CallEffects | undefined }>(
  redaction: Redaction,
  agent: Speaker,
  end: T,
): T {
  const text = redaction.text(end.text, { kind: 'tool.result', author: agentAuthor(agent) });
  const { effects } = end;
  if (!effects) return { ...end, text };
  const { events, posts, timers } = effects;
  return {
    ...end,
    text,
    effects: {
      ...effects,
      events: events.map((draft) => redaction.draft(draft)),
      posts: redaction.posts(posts),
      timers: timers.map((timer) => ({ ...timer, posts: redaction.posts(timer.posts) })),
    },
  };
}

const MAX_WORD = 256;
const WORD = /^(?:true|false|null|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/i;

/**
 * Redacts arguments of a call while the model writes them, with the result of `Redaction.json`.
 *  R1  A text is held back until its end, because a secret may begin in one piece and end in another.
 *  R2  From the first part on that is not JSON, everything is held back and redacted as one text when it is complete. The same
 *      holds after a text of more than `most` characters.
 *  R3  Each character is read once.
 */
export class ArgumentsRedactor {
  readonly #redact: (text: string) => string;
  readonly #most: number;
  /** The pieces of the text or word that has begun. */
  #held: string[] = [];
  #length = 0;
  #state: 'between' | 'text' | 'escape' | 'word' | 'silent' = 'between';

  constructor(redact: (text: string) => string, most: number) {
    this.#redact = redact;
    this.#most = most;
  }

  /** Adds a piece. Returns the text that may be shown now. */
  push(piece: string): string {
    let shown = '';
    /** Index where the part begins that is neither shown nor held back yet. */
    let from = 0;
    for (let at = 0; at < piece.length && this.#state !== 'silent'; at += 1) {
      const sign = piece.charAt(at);
      if (this.#state === 'escape') this.#state = 'text';
      else if (this.#state === 'text') {
        if (sign === '\\') this.#state = 'escape';
        else if (sign === '"') {
          this.#hold(piece.slice(from, at + 1));
          from = at + 1;
          shown += this.#textEnded();
        }
      } else if (BETWEEN.test(sign)) {
        if (this.#state === 'word') {
          this.#hold(piece.slice(from, at));
          from = at;
          shown += this.#wordEnded();
        }
      } else if (this.#state === 'between') {
        shown += piece.slice(from, at);
        from = at;
        this.#state = sign === '"' ? 'text' : 'word';
      } else if (sign === '"') this.#state = 'silent';
    }
    if (this.#state === 'silent') return shown;
    if (this.#state === 'between') return shown + piece.slice(from);
    this.#hold(piece.slice(from));
    return shown;
  }

  #hold(part: string): void {
    this.#held.push(part);
    this.#length += part.length;
    if (this.#length > (this.#state === 'word' ? MAX_WORD : this.#most)) this.#fallSilent();
  }

  #release(): string {
    const held = this.#held.join('');
    this.#held = [];
    this.#length = 0;
    this.#state = 'between';
    return held;
  }

  #fallSilent(): void {
    this.#release();
    this.#state = 'silent';
  }

  #textEnded(): string {
    if (this.#state === 'silent') return '';
    const written = this.#release();
    const text = textOf(written);
    if (text === null) {
      this.#fallSilent();
      return '';
    }
    const made = this.#redact(text);
    return made === text ? written : JSON.stringify(made);
  }

  #wordEnded(): string {
    if (this.#state === 'silent') return '';
    const word = this.#release();
    if (WORD.test(word)) return word;
    this.#fallSilent();
    return '';
  }
}

const BETWEEN = /[\s{}[\]:,]/;

function textOf(written: string): string | null {
  try {
    return JSON.parse(written) as string;
  } catch {
    return null; // The arguments as a whole are not JSON either.
  }
}
