import * as z from 'zod';
import { agentsInRouting, RoutingSettings, routeBy } from '../routing/route.ts';
import { Cron } from 'croner';
import type { Schedule } from '../../actors/attempt/feature-types.ts';
import { AgentId, ConversationId, RunStep, templateOf, TenantId } from '../../events/index.ts';
import { COMPLETE_STEP } from '../../machines/run-fold.ts';
import type { MessageRouter } from '../../actors/conversations/messages.ts';
import type { AgentRegistry } from '../../actors/actor/agent-runtime.ts';
import { type Problem, unknownAgent, usedTwice } from './problem.ts';

/** For sketches: the readable parts of settings that may be invalid. */
const Text = z.string().optional().catch(undefined);

/** A message that is sent to an agent at certain times. */
const ScheduleSettings = z.strictObject({
  /** Identifies the schedule, 1 to 64 of `A-Z a-z 0-9 _ -`: a renamed schedule is a new one. */
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'a name is 1 to 64 of A-Z a-z 0-9 _ -'),
  /** Five fields: minute, hour, day of the month, month, day of the week; or a nickname such as `@daily`. */
  cron: z.string().min(1).max(200),
  /** IANA time zone, such as `Europe/Berlin`. Default UTC. */
  timezone: z.string().min(1).optional(),
  /** Id of the conversation that the message is sent to. */
  conversation: ConversationId,
  /** Id of the agent that answers. */
  to: AgentId,
  /** Words of the message. */
  content: z.string().min(1),
});
const Schedules = z.array(ScheduleSettings).max(1_000);
type Schedules = z.infer<typeof Schedules>;

export function schedulesOf(settings: Schedules): Schedule[] {
  return settings.map(({ name, cron, timezone, conversation, to, content }) => {
    const times = timesOf(cron, timezone);
    return {
      name,
      conversation,
      to,
      content,
      lastBy: (now) => lastBy(times, now),
    };
  });
}

function timesOf(cron: string, timezone = 'UTC'): Cron {
  return new Cron(cron, { timezone, mode: '5-part' });
}

/** The last time up to and including `now`. `previousRuns` excludes its argument, hence 1 ms later. */
function lastBy(times: Cron, now: number): number | null {
  return times.previousRuns(1, new Date(now + 1))[0]?.getTime() ?? null;
}

/** Reports duplicate names, unknown agents and time zones, and invalid times or times that never come. */
function* scheduleProblems(
  settings: unknown,
  checkAgent: (agent: string, path: PropertyKey[]) => Generator<Problem>,
): Generator<Problem> {
  const schedules = z
    .array(z.object({ name: Text, cron: Text, timezone: Text, to: Text }).catch({}))
    .catch([])
    .parse(settings);
  const names = schedules.map(({ name }) => name);
  for (const [index, { cron, timezone, to }] of schedules.entries()) {
    const path = ['schedules', index];
    yield* usedTwice(names, index, [...path, 'name']);
    if (to !== undefined) yield* checkAgent(to, [...path, 'to']);
    const isZone = timezone === undefined || isTimezone(timezone);
    if (!isZone) yield { path: [...path, 'timezone'], message: `"${timezone}" is not a time zone` };
    const problem = cron === undefined ? null : cronProblem(cron);
    if (problem !== null) yield { path: [...path, 'cron'], message: problem };
  }
}

function isTimezone(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone });
    return true;
  } catch {
    // The constructor throws for an unknown zone.
    return false;
  }
}

/** A fixed start, in UTC, so that the result does not depend on the time of reading. UTC skips no minute. */
const FROM = new Date('2000-01-01T00:00:00Z');

function cronProblem(cron: string): string | null {
  try {
    return timesOf(cron).nextRun(FROM) === null ? `"${cron}" never occurs` : null;
  } catch (error) {
    return error instanceof Error ? error.message.replace(/^Cron\w+: /, '') : String(error);
  }
}

const TrustSettings = z.strictObject({
  /** Ids of people. Default: everybody. Messages of others are stored; the command `dispatch` passes them on. */
  people: z.array(z.string().min(1).max(128)).max(10_000).optional(),
});

const LifecycleSettings = z.strictObject({
  /** Archives a conversation with no open tasks after this time without events, ms. At least 1,000. Default: never. */
  archiveAfterMs: z.int().min(1_000).optional(),
  /** Deletes an archived conversation and its threads this long after its last event, ms, without an export. Default: never. */
  deleteAfterMs: z.int().min(1_000).optional(),
});

const Days = z.number().positive().max(36_500);

const RetentionSettings = z.strictObject({
  /** Days without an event after which a conversation is erased with its threads and files, as `troupe.erase` does. */
  days: Days,
  /** Days of single tenants, by their ids. Default: `days` for all. */
  tenants: z.record(TenantId, Days).optional(),
});

/** Fields of a definition for trust, routing, schedules, lifecycle and retention. */
export const CoordinationSettings = {
  /** The people whose messages wake agents. Default: everybody. */
  trust: TrustSettings.optional(),
  /** Chooses agents for messages of people that name none. If it finds none, `defaults.respondWhenUnaddressed` answers. */
  routing: RoutingSettings.optional(),
  /** Messages that are sent to agents at certain times. Default: none. */
  schedules: Schedules.optional(),
  /** Automatic archiving and deletion of conversations. Default: never. */
  lifecycle: LifecycleSettings.optional(),
  /** Erases conversations after a time without events. Default: they are kept. */
  retention: RetentionSettings.optional(),
};

type Ids = readonly (string | undefined)[];

/** Reports problems of templates, routing and schedules, unknown agents among them. */
export function* coordinationProblems(
  { routing, schedules }: { routing?: unknown; schedules?: unknown },
  agents: Ids,
  templates: Ids,
): Generator<Problem> {
  function* checkAgent(agent: string, path: PropertyKey[]): Generator<Problem> {
    const isKnown = agents.includes(agent) || templates.includes(templateOf(agent) ?? '');
    if (!isKnown) yield unknownAgent(agent, agents, path);
  }
  yield* templateProblems(templates, agents);
  for (const [path, agent] of agentsInRouting(routing)) yield* checkAgent(agent, ['routing', ...path]);
  yield* scheduleProblems(schedules, checkAgent);
}

/** A sequence of steps that agents take a conversation through. */
const WorkflowSettings = z.strictObject({
  /** 1 to 64 of `A-Z a-z 0-9 _ -`; the command `run` names it. */
  id: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'a workflow id is 1 to 64 of A-Z a-z 0-9 _ -'),
  /** Purpose of a run that names none. Default: none. */
  directive: z.string().min(1).optional(),
  /** In order; 1 to 200. */
  steps: z.array(RunStep).min(1, 'a workflow needs at least one step').max(200),
});
export const Workflows = z.array(WorkflowSettings).max(1_000);

const Sketch = z
  .array(
    z
      .object({
        id: Text,
        steps: z.array(z.object({ id: Text, agent: Text, completeWhen: Text }).catch({})).catch([]),
      })
      .catch({ steps: [] }),
  )
  .catch([]);

/** Reports duplicate ids, unknown agents, and steps that their agent cannot complete. */
export function* workflowProblems(
  settings: unknown,
  agents: Ids,
  toolsOf: (agent: string) => readonly (string | undefined)[] | null,
): Generator<Problem> {
  const workflows = Sketch.parse(settings);
  const ids = workflows.map(({ id }) => id);
  for (const [index, { steps }] of workflows.entries()) {
    const path = ['workflows', index];
    yield* usedTwice(ids, index, [...path, 'id']);
    const stepIds = steps.map(({ id }) => id);
    for (const [at, step] of steps.entries()) {
      const where = [...path, 'steps', at];
      yield* usedTwice(stepIds, at, [...where, 'id']);
      if (!AgentId.safeParse(step.agent).success) continue;
      const tools = toolsOf(step.agent ?? '');
      if (!tools) yield unknownAgent(step.agent ?? '', agents, [...where, 'agent']);
      else if (step.completeWhen === 'tool' && !tools.includes(COMPLETE_STEP)) {
        const message = `@${step.agent} could not say that it is complete: give it the tool ${COMPLETE_STEP}`;
        yield { path: [...where, 'completeWhen'], message };
      }
    }
  }
}

/** Routes messages by the settings of a definition. Null: there is no routing. */
export function messageRouter(
  settings: RoutingSettings | undefined,
  registry: AgentRegistry,
): MessageRouter | null {
  if (!settings) return null;
  const agents = [...registry.values()].map(({ profile, capabilities }) => {
    const { id, role, description } = profile;
    return { id, role, description, capabilities };
  });
  return {
    by: settings.by,
    find: (message, place) => routeBy(settings, message, { ...place, agents }),
  };
}

/** Reports templates whose names clash with agents or with each other. */
function* templateProblems(templates: Ids, agents: Ids): Generator<Problem> {
  for (const [index, id] of templates.entries()) {
    if (id === undefined) continue;
    const path = ['templates', index, 'id'];
    if (agents.includes(id)) yield { path, message: `"${id}" is already the id of an agent` };
    yield* usedTwice(templates, index, path);
    const taken = agents.find((agent) => agent !== undefined && templateOf(agent) === id);
    if (taken !== undefined)
      yield { path, message: `its agents get the ids ${id}-1, ${id}-2, …, but "${taken}" already exists` };
  }
}
