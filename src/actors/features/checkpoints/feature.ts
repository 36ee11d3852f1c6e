import type { Feature, CheckpointsFeature, ImportFolds, TurnDeps } from '../../attempt/turn-run.ts';
import { createParticipantsCache } from '../../conversations/messages.ts';
import {
  catchUpInSlices,
  type Checkpoints,
  type Folded,
  NOTHING_STORED,
  type Place,
  type Stored,
} from '../../log/read-log.ts';
import { createTaskFolds } from '../../log/tasks.ts';
import { createCheckpoints } from './checkpoints.ts';
import { createView, forkView, hashText, type Slot, type View } from '../../../context/index.ts';
import type { ActorAddress, AgentId, EventId } from '../../../events/index.ts';
import { forkTaskFold, newTaskFold } from '../../../machines/task-fold.ts';
import type { ConversationKey } from '../../../store/store.ts';

export const checkpoints: Feature = {
  open({ foldEvery, ...parts }) {
    const folds = createCheckpoints({ ...parts, ...(foldEvery !== undefined && { least: foldEvery }) });
    return { checkpoints: hooksOf(folds) };
  },
};

function hooksOf(folds: Checkpoints): CheckpointsFeature {
  const { least } = folds;
  return {
    folds,
    isWorthStoring: (live) => isWorthStoring(live, { least }),
    async keep(live, { isBusy }) {
      if (!isAtRest(live.view) || !isWorthStoring(live, { least, isBusy })) return null;
      const copy = copyFolds(live);
      // Read under the lease, so that the conversation cannot be deleted meanwhile.
      const place = await folds.mark(live.address, live.view.upTo);
      return () => {
        if (place) live.stored = storeFolds(folds, live.address, copy, place);
      };
    },
    ofImport: (deps, log) => foldsOfImport(folds, deps, log),
    restore: (address, options) => restoreFolds(folds, address, options),
    close: () => folds.flush(),
  };
}

/** An agent without rest is stored less often, by this factor, because copying delays its next turn. */
const BUSY_FACTOR = 4;

/**
 * Whether the folds should be stored again after the turn: the view was rewritten, or has grown by half of its messages. So
 * the written amount is proportional to new events, and less than half a window is read again.
 */
export function isWorthStoring(
  { view, stored }: Pick<Folded, 'view'> & { stored: Stored },
  { least: leastEvents, isBusy = false }: { least: number; isBusy?: boolean },
): boolean {
  const least = leastEvents * (isBusy ? BUSY_FACTOR : 1);
  const grown = view.upTo - stored.seq;
  if (view.upTo < least || grown <= 0) return false;
  return grown >= Math.max(least, view.slots.length / 2) || lastCut(view) !== stored.cut;
}

/** Whether no turn of the agent is running, so that everything in the view is also in the log. */
export function isAtRest({ turn, note, group }: View): boolean {
  return turn === null && note === null && group === null;
}

/** A copy of the folds. It is cheap, because messages are shared. */
export function copyFolds({ view, tasks }: Folded): Folded {
  return { view: forkView(view), tasks: forkTaskFold(tasks) };
}

/** Queues copied folds for storing. Returns what is then stored. */
export function storeFolds(
  checkpoints: Checkpoints,
  address: ActorAddress,
  { view, tasks }: Folded,
  place: Place,
): Stored {
  const { slots, secret, ...rest } = withoutPast(view);
  const first: Stem = { view: rest, tasks, secretHash: hashText(secret) };
  checkpoints.save(address, subjectOf(address), place, [first, ...inChunks(slots)]);
  return { seq: place.seq, cut: lastCut(view) };
}

/** The newest stored folds up to `upTo`; null if there are none. */
export async function restoreFolds(
  checkpoints: Checkpoints,
  address: ActorAddress,
  { secret, upTo = Infinity }: { secret: string; upTo?: number },
): Promise<{ folded: Folded; stored: Stored } | null> {
  const found = await checkpoints.load(address, subjectOf(address), { upTo });
  if (!found) return null;
  const [{ view: rest, tasks, secretHash }, ...chunks] = found.parts as [Stem, ...Slot[][]];
  // The messages have marks of another secret, so the checkpoint belongs to another store.
  if (secretHash !== hashText(secret)) return null;
  const view: View = { ...rest, slots: chunks.flat(), secret };
  return {
    folded: { view, tasks },
    stored: { seq: found.seq, cut: lastCut(view) },
  };
}

/** The folds without the secret, and without the messages of the view, which are separate parts. */
interface Stem {
  view: Omit<View, 'slots' | 'secret'>;
  tasks: Folded['tasks'];
  secretHash: string;
}

const CHUNK = 200;

function inChunks(slots: readonly Slot[]): Slot[][] {
  const count = Math.ceil(slots.length / CHUNK);
  return Array.from({ length: count }, (_, at) => slots.slice(at * CHUNK, (at + 1) * CHUNK));
}

function subjectOf({ agent }: ActorAddress): string {
  return `actor:${agent}`;
}

function lastCut({ cuts }: View): EventId | null {
  return cuts.at(-1)?.event ?? null;
}

/**
 * The view without the texts of superseded compactions. `supplyAdopted` reads one again if an event still adopts it. The
 * newest one stays, because the next one continues it.
 */
function withoutPast(view: View): View {
  const inForce = new Set(view.slots.flatMap(({ layer, event }) => (layer === 'summary' ? [event] : [])));
  const newest = [...view.compactions.keys()].at(-1);
  const needed = [...view.compactions].filter(
    ([id, { upTo }]) => upTo > view.floor || inForce.has(id) || id === newest,
  );
  return { ...view, compactions: new Map(needed) };
}

/** Most agents of an imported conversation whose views are stored. */
const MOST_VIEWS = 16;

/** Other events would all be read, and only the store translates former ids. */
async function foldsOfImport(
  folds: Checkpoints,
  deps: TurnDeps,
  log: ConversationKey,
): Promise<ImportFolds | null> {
  if (deps.agents.former || (await deps.store.head(log)) > 0) return null;
  const participants = createParticipantsCache(deps.log, folds);
  const tasks = createTaskFolds(deps.log, folds);
  const actors = new Map<AgentId, Folded>();
  return {
    async extend({ agents }) {
      await participants.of(log);
      await tasks.of(log);
      for (const [agent, turns] of agents) {
        const hasRoom = turns > 0 && deps.agents.has(agent) && actors.size < MOST_VIEWS;
        if (!hasRoom || actors.has(agent)) continue;
        const secret = deps.secretOf({ ...log, agent });
        actors.set(agent, { view: createView(agent, secret), tasks: newTaskFold() });
      }
      for (const [agent, folded] of actors) await catchUpInSlices(deps, { ...log, agent }, folded);
    },
    async store() {
      for (const [agent, folded] of actors) {
        const { view } = folded;
        if (!isAtRest(view) || !isWorthStoring({ view, stored: NOTHING_STORED }, folds)) continue;
        const place = await folds.mark(log, view.upTo);
        if (place) storeFolds(folds, { ...log, agent }, folded, place);
      }
      await prepareMemory(deps, log, actors);
    },
  };
}

/** Builds the index of memories. What is stored of it is shared, so that of the agent whose summary covers most suffices. */
async function prepareMemory(
  deps: TurnDeps,
  log: ConversationKey,
  actors: ReadonlyMap<AgentId, Folded>,
): Promise<void> {
  const searching = [...actors].filter(([agent]) => deps.agents.get(agent)?.retrieval);
  const [longest] = searching.sort(([, one], [, other]) => other.view.floor - one.view.floor);
  if (!longest) return;
  const [agent, { view }] = longest;
  if (view.floor > 0) await deps.features.memory?.prepare(deps, { ...log, agent }, view.floor);
}
