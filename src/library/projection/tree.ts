import type { AgentId, ConversationId, TurnId } from '../../events/index.ts';
import type { Arrow, Projection, TaskView, TokenCounts, TurnView } from './model.ts';

/** A turn, or a task that one agent gave another, in the tree of what a conversation has started. */
export interface TreeNode {
  /** Id of the turn or of the task. */
  id: string;
  kind: 'turn' | 'task';
  /** The turn or task that caused it; null for the first of a conversation. */
  parent: string | null;
  conversation: ConversationId;
  /** Where it begins in its conversation. */
  seq: number;
  /** Who asked for it: the name of a person or the id of an agent; null if that is no longer kept. */
  from: string | null;
  to: AgentId;
  /** What was asked, in a line. */
  text: string;
  state: 'running' | 'done' | 'failed' | 'aborted' | 'cancelled';
  at: number;
  endedAt: number | null;
  /** Null for a task: its turns have them. */
  tokens: TokenCounts | null;
  /** The answer or the error of a turn, in a line. */
  said: string;
  turn: TurnId | null;
  /** The conversation in which a task is worked on. */
  thread: ConversationId | null;
}

/** The turns and tasks that a conversation has started, over all threads. */
export interface Tree {
  conversation: ConversationId;
  seq: number;
  nodes: TreeNode[];
  /** What is missing: threads that were not read, turns that projections no longer keep, and the oldest of very many tasks. */
  left: { threads: number; turns: number; tasks: number };
}

/** The turns and tasks of one conversation. Those without a cause in it are caused by `home`, the task of a thread. */
export function treeOf(projection: Projection, home: string | null = null): TreeNode[] {
  const tasks = projection.tasks.filter(isGiven);
  const given = tasks.filter(({ thread }) => thread !== projection.conversation);
  const scene: Scene = {
    projection,
    home,
    tasks,
    arrows: new Map(projection.arrows.map((arrow) => [arrow.seq, arrow])),
    turns: Map.groupBy(projection.turns, ({ agent }) => agent),
  };
  return [
    ...projection.turns.map((turn) => turnNode(scene, turn)),
    ...given.map((task) => taskNode(scene, task)),
  ];
}

type Given = TaskView & { assignee: AgentId; thread: ConversationId };

interface Scene {
  projection: Projection;
  home: string | null;
  tasks: readonly Given[];
  arrows: ReadonlyMap<number, Arrow>;
  turns: ReadonlyMap<AgentId, readonly TurnView[]>;
}

function isGiven(task: TaskView): task is Given {
  return task.kind === 'delegation' && task.assignee !== null && task.thread !== null;
}

function turnNode(scene: Scene, turn: TurnView): TreeNode {
  const input = scene.arrows.get(turn.inputs[0] ?? 0);
  return {
    id: turn.id,
    kind: 'turn',
    parent: causeOf(scene, turn, input),
    conversation: scene.projection.conversation,
    seq: turn.from,
    from: input?.from ?? turn.trigger?.name ?? null,
    to: turn.agent,
    text: turn.trigger?.text ?? '',
    state: turn.status,
    at: turn.startedAt,
    endedAt: turn.endedAt,
    tokens: turn.tokens,
    said: turn.error?.message ?? turn.said,
    turn: turn.id,
    thread: null,
  };
}

function taskNode(
  scene: Scene,
  { id, seq, at, owner, assignee, text, outcome, endedAt, thread }: Given,
): TreeNode {
  const turn = turnAt(scene, owner, seq);
  return {
    id,
    kind: 'task',
    parent: turn?.id ?? scene.home,
    conversation: scene.projection.conversation,
    seq,
    from: owner,
    to: assignee,
    text,
    state: stateOf(outcome),
    at,
    endedAt,
    tokens: null,
    said: '',
    turn: turn?.id ?? null,
    thread,
  };
}

function stateOf(outcome: string | null): TreeNode['state'] {
  if (outcome === null) return 'running';
  return outcome === 'failed' || outcome === 'cancelled' ? outcome : 'done';
}

/** The cause of a turn: its thread's task, or the turn that wrote to it or gave the task whose result it received. */
function causeOf(scene: Scene, turn: TurnView, input: Arrow | undefined): string | null {
  const { home, tasks, projection } = scene;
  if (!input?.isAgent) return home;
  if (input.kind === 'delegation.opened')
    return (
      tasks.find(({ seq, thread }) => seq === input.seq && thread === projection.conversation)?.id ?? home
    );
  if (input.kind.startsWith('delegation.')) {
    const task = tasks.find(
      ({ owner, assignee, endedAt }) =>
        owner === turn.agent && assignee === input.from && endedAt === input.at,
    );
    return (task && turnAt(scene, task.owner, task.seq)?.id) ?? home;
  }
  return turnAt(scene, input.from as AgentId, input.seq)?.id ?? home;
}

function turnAt({ turns }: Scene, agent: AgentId, seq: number): TurnView | undefined {
  return turns.get(agent)?.findLast(({ from, to }) => from <= seq && seq <= (to ?? Infinity));
}
