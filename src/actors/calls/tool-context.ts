import { type Author, type Event, hasAuthority, type PinnedTurn } from '../../events/index.ts';
import type { ToolContext } from '../../tools/tool.ts';
import type { TurnRun } from '../turn/turn-run.ts';
import { eventsAt, originsOf } from './asked-by.ts';

/** What the tools of a turn are told besides their arguments. */
export type AboutTools = Omit<ToolContext, 'effect' | 'signal' | 'artifacts' | 'progress'>;

/** Found once for each set of inputs: a turn that takes in another message is another object. */
const known = new WeakMap<PinnedTurn, Promise<AboutTools>>();

export function aboutTools(run: TurnRun): Promise<AboutTools> {
  const found = known.get(run.turn) ?? readAbout(run);
  known.set(run.turn, found);
  // A store that was away is asked again.
  found.catch(() => known.delete(run.turn));
  return found;
}

async function readAbout({ deps, live, turn, runtime }: TurnRun): Promise<AboutTools> {
  const { address } = live;
  const seqs = [...turn.inputs, ...(turn.steered ?? []).flatMap(({ inputs }) => inputs)];
  const origins = await originsOf(deps, await eventsAt(deps, address, seqs));
  const { id, name } = runtime.profile;
  const itself: Author = { kind: 'agent', id, name };
  return {
    address,
    tenant: address.tenant,
    conversation: address.conversation,
    agent: address.agent,
    turn: turn.id,
    author: origins.at(-1)?.author ?? itself,
    authors: distinct(origins.map(({ author }) => author)),
    app: deps.app,
    forTools: valueOf(deps.forTools, origins.at(-1)),
  };
}

/** The value that came with a message: what this process was given, else what was stored with it. */
function valueOf(given: TurnRun['deps']['forTools'], origin: Event | undefined): unknown {
  if (!origin) return null;
  const here = given?.get(origin);
  if (here !== undefined) return here;
  return hasAuthority(origin) ? (origin.context?.forTools ?? null) : null;
}

/** One for each person, under the name used last. */
function distinct(authors: readonly Author[]): Author[] {
  return [...new Map(authors.map((author) => [`${author.kind} ${author.id}`, author])).values()];
}
