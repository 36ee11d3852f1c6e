import * as z from 'zod';
import { TroupeError } from '../../base/errors.ts';
import {
  type ActorAddress,
  type ActorRecord,
  addressKey,
  AgentId,
  ConversationId,
  DEFAULT_TENANT,
  SYSTEM_AUTHOR,
  type TenantId,
} from '../../events/index.ts';
import { isTaskOpen, openTasks, type Task } from '../../machines/task-fold.ts';
import type { ConversationKey, Store } from '../../store/store.ts';
import { readTasks, cancellationOf, sendOutgoing } from '../log/tasks.ts';
import type { EngineDeps } from '../actor/engine-deps.ts';

/**
 * Work for agents that are no longer defined: renamed in the agents file, or removed from it.
 *  U1  Messages to such an agent stay, and if it is defined again, it continues from its index. Only tasks that it was given
 *      or gave are ended, because somebody waits for them.
 *  U2  Nothing ends before the agent was missing for `ROUNDS` rounds, so that a mistake can be corrected.
 *  U3  Each process records the agents that it defines. An agent that any process has recorded within `ROUNDS` rounds counts
 *      as defined. So an older process does not end the tasks of an agent that only newer ones define.
 */
export interface UndefinedAgents {
  /** Records the agents of this process for the others. */
  note(): Promise<void>;
  /** Whether another process has recently recorded that it defines the agent. */
  isElsewhere: (agent: AgentId) => boolean;
  /** Checks the actors with work that a round has found. */
  heed(due: readonly ActorAddress[]): Promise<void>;
}

const ROUNDS = 3;
/** Maximum actors that are checked in a round, and that are listed for a tenant. */
const MOST = 100;
/** Maximum open tasks whose agents are checked when a process starts. */
const MOST_TASKS = 1_000;

/** Key of a tenant's entry with its work for agents that are not defined. */
const LISTED_KEY = 'undefined agents';
/** `work`: the open work, in words. */
const Line = z.object({ conversation: ConversationId, agent: AgentId, since: z.number(), work: z.string() });
type Line = z.infer<typeof Line>;
const Lines = z.array(Line).catch([]);

/** Key of the entry with the last time at which a process defined each agent. */
const DEFINED_KEY = 'defined agents';
const Defined = z.record(z.string(), z.number()).catch({});
const FORGOTTEN_MS = 24 * 3_600_000;

interface Missing {
  address: ActorAddress;
  rounds: number;
  isSettled: boolean;
}

export function createUndefinedAgents(deps: EngineDeps): UndefinedAgents {
  const { agents, store, clock, limits } = deps;
  const missing = new Map<string, Missing>();
  const warned = new Set<AgentId>();
  let noted: Record<string, number> = {};
  /** Owners found in the first round. Their agents may count as defined then and as missing later. */
  let waiting: readonly ActorAddress[] | null = null;

  function isDefined(agent: AgentId): boolean {
    return agents.has(agent) || isElsewhere(agent);
  }

  function isElsewhere(agent: AgentId): boolean {
    // The id of a template's agent is that of the template with a number.
    const at = noted[agent] ?? noted[agent.replace(/-\d+$/, '')] ?? -Infinity;
    return clock.now() - at <= ROUNDS * limits.sweepMs;
  }

  async function see(address: ActorAddress): Promise<void> {
    const work = await openWork(deps, address);
    missing.set(addressKey(address), { address, rounds: 0, isSettled: work === null });
    if (work === null) return;
    const { tenant, conversation, agent } = address;
    await list(store, tenant, (lines) => [
      ...lines.filter((line) => !isOf(address, line)),
      { conversation, agent, since: clock.now(), work },
    ]);
    if (warned.has(agent)) return;
    warned.add(agent);
    const message = `@${agent} is not defined, but has work, in ${conversation} for one (${work}): define it again if it was removed by mistake, or, if it was renamed, give the agent that it is now aliases: ["${agent}"]; else its open tasks are ended, and its messages stay`;
    deps.onWarning(new TroupeError('agent_unknown', message, { agent, conversation }), `work of @${agent}`);
  }

  async function settle(found: Missing): Promise<void> {
    found.isSettled = true;
    const { address } = found;
    await endTasksOf(deps, address);
    if ((await openWork(deps, address)) !== null) return;
    await list(store, address.tenant, (lines) => lines.filter((line) => !isOf(address, line)));
  }

  return {
    isElsewhere,
    async note() {
      if (!limits.soleOwner) noted = await noteOwn(deps);
    },
    async heed(due) {
      waiting ??= await undefinedOwners(store, agents, clock.now());
      const found = [...due, ...waiting];
      if (missing.size >= MOST_TASKS) missing.clear();
      const isNew = (address: ActorAddress) => !isDefined(address.agent) && !missing.has(addressKey(address));
      for (const address of found.filter(isNew).slice(0, MOST)) await see(address);
      for (const [key, each] of missing) {
        if (isDefined(each.address.agent)) missing.delete(key);
        else if (!each.isSettled && (each.rounds += 1) > ROUNDS) await settle(each);
      }
    },
  };
}

function isOf({ conversation, agent }: ActorAddress, line: Line): boolean {
  return line.conversation === conversation && line.agent === agent;
}

/** The open work for which somebody may wait, in words; null if there is none, as in the thread of an ended task. */
async function openWork(
  deps: Pick<EngineDeps, 'store' | 'checkpoints'>,
  { agent, ...log }: ActorAddress,
): Promise<string | null> {
  const head = await deps.store.head(log);
  if (head === 0) return null;
  const { fold } = await readTasks(deps.store, log, deps.checkpoints);
  const record = await deps.store.readActor({ ...log, agent });
  const own = openTasks(fold, agent);
  const mayWait = own.length > 0 || (fold.thread ? isTaskOpen(fold) : isBehind(record, head));
  if (!mayWait) return null;
  const range = { after: record?.processed ?? 0, upTo: head };
  const unread = await deps.store.addressed({ ...log, agent }, range);
  const given = (fold.thread?.open ?? []).filter(({ assignee }) => assignee === agent);
  const parts = [
    counted(given.length, 'task to do', 'tasks to do'),
    ...tasksInWords(own),
    counted(unread.length, 'unread message'),
  ].filter((part) => part !== '');
  return parts.length > 0 ? parts.join(', ') : 'a turn to finish';
}

function isBehind(record: ActorRecord | null, head: number): boolean {
  return record === null || record.turn !== null || record.processed < head;
}

function tasksInWords(own: readonly Task[]): string[] {
  const ofKind = (kind: Task['kind']) => own.filter((task) => task.kind === kind).length;
  return [
    counted(ofKind('delegation'), 'task that others do for it', 'tasks that others do for it'),
    counted(ofKind('question'), 'question'),
    counted(ofKind('approval'), 'approval'),
  ];
}

function counted(n: number, what: string, several = `${what}s`): string {
  return n === 0 ? '' : `${n} ${n === 1 ? what : several}`;
}

/** All actors with open work whose agents are not defined, with the work in words. */
export async function undefinedActors(
  deps: Pick<EngineDeps, 'store' | 'clock' | 'checkpoints'> & { agents: { has(agent: AgentId): boolean } },
): Promise<(ActorAddress & { work: string })[]> {
  const { store, agents, clock } = deps;
  const all = Number.MAX_SAFE_INTEGER;
  const due = await store.due({ now: all, clock: clock.now(), since: 0, limit: MOST_TASKS });
  const found = new Map<string, ActorAddress & { work: string }>();
  for (const address of [...due, ...(await undefinedOwners(store, agents, clock.now()))]) {
    const key = addressKey(address);
    const work = agents.has(address.agent) || found.has(key) ? null : await openWork(deps, address);
    if (work !== null) found.set(key, { ...address, work });
  }
  return [...found.values()];
}

/** Owners and assignees of open tasks that are not defined. A sweep may not find them, because no event addresses them. */
async function undefinedOwners(
  store: Pick<Store, 'due' | 'readActor'>,
  agents: { has(agent: AgentId): boolean },
  now: number,
): Promise<ActorAddress[]> {
  // Each open task has a timer with the events that end it, one for its owner and one for the assignee.
  const all = Number.MAX_SAFE_INTEGER;
  const owners = await store.due({ now: all, clock: all, since: now, limit: MOST_TASKS });
  const found = new Map<string, ActorAddress>();
  for (const owner of owners) {
    const record = await store.readActor(owner).catch(() => null); // an unreadable record only concerns its own actor
    const posts = (record?.timers ?? []).flatMap((timer) => timer.posts);
    const others = posts.flatMap(({ conversation, draft }) =>
      draft.to.map((agent) => ({ tenant: owner.tenant, conversation, agent })),
    );
    for (const address of [owner, ...others])
      if (!agents.has(address.agent)) found.set(addressKey(address), address);
  }
  return [...found.values()];
}

/** Ends the open tasks that the agent was given or has given, so that the other side of each learns of it. */
async function endTasksOf(deps: EngineDeps, { tenant, conversation, agent }: ActorAddress): Promise<void> {
  const log = { tenant, conversation };
  const why = `@${agent} is no longer defined: it was renamed or removed`;
  const { fold } = await readTasks(deps.store, log, deps.checkpoints);
  const end = (at: ConversationKey, task: Task) => cancellationOf(at, task, SYSTEM_AUTHOR, why);
  const own = openTasks(fold, agent).flatMap((task) => end(log, task));
  const given = [];
  for (const { delegation, home, assignee } of fold.thread?.open ?? []) {
    if (assignee !== agent) continue;
    const above = { tenant, conversation: home };
    const task = (await readTasks(deps.store, above, deps.checkpoints)).fold.tasks.get(delegation);
    if (task?.end === null) given.push(...end(above, task));
  }
  await sendOutgoing(deps, tenant, [...own, ...given]);
}

/** Records the agents of this process, unless that was done recently. Returns the last time of each known agent. */
async function noteOwn({ store, agents, clock, limits }: EngineDeps): Promise<Record<string, number>> {
  const now = clock.now();
  const before = await store.get(DEFAULT_TENANT, DEFINED_KEY);
  const known = parsed(Defined, before) ?? {};
  const own: string[] = [...agents.keys(), ...(agents.templates ?? []), ...(agents.former?.keys() ?? [])];
  if (own.every((agent) => now - (known[agent] ?? -Infinity) < limits.sweepMs)) return known;
  const recent = Object.entries(known).filter(([, at]) => now - at < FORGOTTEN_MS);
  const noted = { ...Object.fromEntries(recent), ...Object.fromEntries(own.map((agent) => [agent, now])) };
  const after = await store.compareAndSet(DEFAULT_TENANT, DEFINED_KEY, before, JSON.stringify(noted));
  // If another process was faster, its entry counts too. The next round writes that of this process.
  return { ...noted, ...parsed(Defined, after) };
}

async function list(
  store: Pick<Store, 'get' | 'compareAndSet'>,
  tenant: TenantId,
  change: (lines: readonly Line[]) => Line[],
): Promise<void> {
  const before = await store.get(tenant, LISTED_KEY);
  const next = JSON.stringify(change(parsed(Lines, before) ?? []).slice(-MOST));
  if (next !== before) await store.compareAndSet(tenant, LISTED_KEY, before, next);
}

/** The listed work of a tenant that still exists, oldest first. */
export async function undefinedWork(
  { store, agents }: Pick<EngineDeps, 'store' | 'agents'>,
  tenant: TenantId,
): Promise<Line[]> {
  const lines = parsed(Lines, await store.get(tenant, LISTED_KEY)) ?? [];
  const open: Line[] = [];
  for (const line of lines) {
    if (agents.has(line.agent)) continue;
    const head = await store.head({ tenant, conversation: line.conversation });
    if (head > 0) open.push(line);
  }
  return open;
}

function parsed<T>(schema: z.ZodType<T>, text: string | null): T | null {
  if (text === null) return null;
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return null; // an unreadable entry counts as missing
  }
}
