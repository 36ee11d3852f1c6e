import { TroupeError } from '../../base/errors.ts';
import type { TenantId, TurnId } from '../../events/index.ts';
import type { Store } from '../../store/store.ts';
import { redactAnswer } from './redact-turn.ts';
import { journalKey, type JournalEntry, type TurnRun } from './turn-run.ts';

/**
 * The journal of a step. A former holder that hung may still journal an answer without the events that its successor takes
 * into that step, and then run its calls. So a process that resumes a turn and takes events first closes the step's key,
 * and continues under the next key.
 *  J1  A step is journalled under the first of its keys that is not closed.
 *  J2  A process chooses the key before it reads the log, once per step. If it finds that key closed, it no longer holds the
 *      lease and makes none of the calls.
 */
interface Closed {
  closed: true;
}

type Kept = JournalEntry | Closed;

function keyOf(turn: TurnId, step: number, index: number): string {
  return index === 0 ? journalKey(turn, step) : `${journalKey(turn, step)}/steered.${index}`;
}

/** The answer to a step, or the ending of the turn. Null: neither is journalled yet. */
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

/** Writes the entry of the present step unless there is one. Returns the entry that counts. */
export async function journalStep(run: TurnRun, entry: JournalEntry): Promise<JournalEntry> {
  return stillOpen(run, await write(run, redacted(run, entry)));
}

/** Journals the answer that seemed to end the turn, since it goes on. */
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

/** Redacted on the way into the journal: its entry is the answer, also for this turn. */
function redacted({ deps, runtime }: TurnRun, entry: JournalEntry): JournalEntry {
  return deps.redaction && 'text' in entry ? redactAnswer(deps.redaction, runtime.profile, entry) : entry;
}

/** 0 for a turn that was never resumed: it has no former holder. */
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
