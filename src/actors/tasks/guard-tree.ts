import type { GuardStoppedBody } from '../../events/index.ts';
import { isTaskOpen } from '../../machines/task-book.ts';
import { ownDraft, type TurnRun } from '../turn/turn-run.ts';
import { isCalledOff, placesOf } from './call-off/called-off.ts';
import type { CallPlace } from './call-effects.ts';

/** Where a new task stands among those that it is part of, and what it is counted with. */
export interface Descent {
  root: TurnRun['live']['address']['conversation'];
  within: ReturnType<typeof placesOf>;
  tree: string;
}

const descents = new WeakMap<TurnRun, { step: number; found: Promise<Descent | null> }>();

/** The same for all calls of one step, which run at once: it is looked at once. */
export function descentOf(run: TurnRun): Promise<Descent | null> {
  const known = descents.get(run);
  if (known?.step === run.step) return known.found;
  const found = findDescent(run);
  descents.set(run, { step: run.step, found });
  return found;
}

/** Null where the task that this turn is for was called off, and nobody but agents speaks: nothing comes of it any more. */
async function findDescent({ deps, live, turn }: TurnRun): Promise<Descent | null> {
  const { tenant, conversation } = live.address;
  const { thread, begun } = live.tasks;
  if (!thread) return { root: conversation, within: [], tree: begun };
  if (!(await isCalledOff(deps.store, tenant, live.tasks))) {
    const within = isTaskOpen(live.tasks) ? placesOf(live.tasks) : [];
    return { root: thread.opened.root, within, tree: thread.opened.tree ?? '' };
  }
  // What a person asks for there begins anew.
  return turn.byPerson ? { root: conversation, within: [], tree: begun } : null;
}

/** Takes a place for one more task of all that came of one message, or says why there is none. */
export async function guardTree(
  run: TurnRun,
  id: string,
  at: CallPlace,
  { root, tree }: Descent,
): Promise<GuardStoppedBody | null> {
  const { deps, live } = run;
  const { tenant } = live.address;
  const waiting = (await deps.pending?.of(tenant)) ?? 0;
  const most = deps.pending?.limit ?? Infinity;
  if (waiting >= most) {
    return {
      guard: 'pending',
      message: `too many agents of this tenant wait for their turn (limits.pendingPerTenant ${most}): give nothing to others now; do it yourself, or say that it has to wait`,
      goOn: 'ask again when fewer wait, or raise limits.pendingPerTenant in the agents file',
    };
  }
  const { maxTreeTasks, maxTreeOpen } = deps.limits;
  const isEnded = (task: string) => (live.tasks.tasks.get(task)?.end ?? null) !== null;
  const opening = ownDraft(run, openingPart(at)).id;
  const taken = await deps.trees.take({ tenant, root, tree }, { id, opening, isEnded });
  if (taken.ok) return null;
  if (taken.of === 'made') {
    return {
      guard: 'tree',
      message: `${taken.made} tasks were made of one message (limits.maxTreeTasks ${maxTreeTasks}): do it yourself, or answer with what you have`,
      goOn: `a message of a person in ${root} begins a new count; or raise limits.maxTreeTasks in the agents file, or call tasks off`,
    };
  }
  return {
    guard: 'tree',
    message: `${taken.open} tasks of one message are open (limits.maxTreeOpen ${maxTreeOpen}): wait for results, do it yourself, or answer with what you have`,
    goOn: `wait until some have ended, or call them off in ${root}; or raise limits.maxTreeOpen in the agents file`,
  };
}

/** Of the id of the event that opens a task, in the log of its owner. */
export function openingPart({ step, index }: CallPlace): string {
  return `opened:${step}.${index}`;
}
