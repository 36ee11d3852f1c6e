import { type Author, type Event, hasAuthority, type PinnedTurn } from '../../events/index.ts';
import type { TaskBook } from '../../machines/task-book.ts';
import type { ToolAnswer, ToolContext } from '../../tools/tool.ts';
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
  const inputs = await eventsAt(deps, address, seqs);
  const origins = await originsOf(deps, inputs);
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
    answers: inputs.flatMap((event) => answerIn(live.tasks, event, address.agent)),
    forTools: valueOf(deps.forTools, origins.at(-1)),
  };
}

/** Only the end that counts: an answer may come after a question has expired. */
function answerIn(tasks: TaskBook, event: Event, agent: string): ToolAnswer[] {
  if (event.kind !== 'question.answered') return [];
  const task = tasks.tasks.get(event.body.question);
  if (task?.kind !== 'question' || task.owner !== agent || task.end?.seq !== event.seq) return [];
  const { outcome, content } = event.body;
  return [{ question: task.body.text, outcome, content, author: event.author }];
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
