import type { ModelRequest } from '../../providers/provider.ts';
import { journalKey, type TurnRun, writeMeanwhile } from '../turn/turn-run.ts';
import type { BegunAnswer } from '../turn/session-run.ts';

/**
 * Marks of an answer with which a provider joins it again, in the journal beside the answers of the steps: the turn may go on
 * in another process.
 *  B1  Marks are numbered, and the last one counts.
 *  B2  Those of a step that a resumed turn has taken events into do not count: what was begun has not seen them.
 */
export async function withBegun(run: TurnRun, request: ModelRequest): Promise<ModelRequest> {
  const { last } = await marksOf(run);
  return last === null ? request : { ...request, begun: last };
}

/** Only during a call whose request went through `withBegun`. */
export function noteBegun(run: TurnRun, mark: string): void {
  const { deps, live, meanwhile } = run;
  const { begun } = meanwhile;
  if (!begun || begun.last === mark) return;
  const { key, count } = begun;
  meanwhile.begun = { key, count: count + 1, last: mark };
  const { tenant } = live.address;
  writeMeanwhile(run, deps.store.journal(tenant, `${key}${count}`, mark, deps.clock.now()));
}

async function marksOf(run: TurnRun): Promise<BegunAnswer> {
  const { deps, live, meanwhile, resumed } = run;
  const key = keyOf(run);
  if (meanwhile.begun?.key === key) return meanwhile.begun;
  let count = 0;
  let last: string | null = null;
  for (; resumed; count += 1) {
    const mark = await deps.store.readJournal(live.address.tenant, `${key}${count}`);
    if (mark === null) break;
    last = mark;
  }
  meanwhile.begun = { key, count, last };
  return meanwhile.begun;
}

function keyOf({ turn, step, meanwhile: { key } }: TurnRun): string {
  const index = key?.step === step ? key.index : 0;
  return `${journalKey(turn.id, step)}/begun.${index}.`;
}
