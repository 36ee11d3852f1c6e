import * as z from 'zod';
import { routingProblems, RoutingSettings } from '../routing/routing-settings.ts';
import { Cron } from 'croner';
import type { Schedule } from '../actors/engine/engine-deps.ts';
import { AgentId, ConversationId, RunStep } from '../events/index.ts';
import { COMPLETE_STEP } from '../machines/run-book.ts';
import type { MessageRouter } from '../actors/conversations/conversation-deps.ts';
import type { AgentRegistry } from '../actors/engine/agent-runtime.ts';
import { routeBy } from '../routing/route.ts';

/** What is said to an agent at certain times. */
const ScheduleSettings = z.strictObject({
  /** Tells schedules apart: under another name it is another one. */
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'a name is 1 to 64 of A-Z a-z 0-9 _ -'),
  /** Minute, hour, day of the month, month, day of the week; or @daily and the like. */
  cron: z.string().min(1).max(200),
  /** As `Europe/Berlin`. Default UTC. */
  timezone: z.string().min(1).optional(),
  conversation: ConversationId,
  to: AgentId,
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

/** `previousRuns` looks before a time, so that time itself is looked for from a little later. */
function lastBy(times: Cron, now: number): number | null {
  return times.previousRuns(1, new Date(now + 1))[0]?.getTime() ?? null;
}

/** A time that never comes, a zone that is none, an agent that nobody is. */
function* scheduleProblems(
  settings: unknown,
  isKnown: (agent: string) => boolean,
): Generator<{ path: PropertyKey[]; message: string }> {
  const sketch = z
    .array(
      z
        .object({
          name: z.string().optional().catch(undefined),
          cron: z.string().optional().catch(undefined),
          timezone: z.string().optional().catch(undefined),
          to: z.string().optional().catch(undefined),
        })
        .catch({}),
    )
    .catch([])
    .parse(settings);
  for (const [index, { name, cron, timezone, to }] of sketch.entries()) {
    const path = ['schedules', index];
    if (name !== undefined && sketch.findIndex((each) => each.name === name) !== index)
      yield { path: [...path, 'name'], message: `"${name}" is used twice` };
    if (to !== undefined && !isKnown(to))
      yield { path: [...path, 'to'], message: `there is no agent "${to}"` };
    const isZone = timezone === undefined || isTimezone(timezone);
    if (!isZone) yield { path: [...path, 'timezone'], message: `"${timezone}" is no time zone` };
    const problem = cron === undefined ? null : cronProblem(cron);
    if (problem !== null) yield { path: [...path, 'cron'], message: problem };
  }
}

function isTimezone(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone });
    return true;
  } catch {
    // It says so by throwing.
    return false;
  }
}

/** In UTC, where every minute comes; from a fixed time, so that a file is good or not whenever it is read. */
const FROM = new Date('2000-01-01T00:00:00Z');

function cronProblem(cron: string): string | null {
  try {
    return timesOf(cron).nextRun(FROM) === null ? `"${cron}" never comes` : null;
  } catch (error) {
    return error instanceof Error ? error.message.replace(/^Cron\w+: /, '') : String(error);
  }
}

/** Whose words wake agents. */
const TrustSettings = z.strictObject({
  /** Ids of people; everybody's by default. What others say is stored, and passed on by `dispatch`. */
  people: z.array(z.string().min(1).max(128)).max(10_000).optional(),
});

/** When conversations end by themselves. */
const LifecycleSettings = z.strictObject({
  /** After this much quiet, with nothing open, a conversation is archived, ms. */
  archiveAfterMs: z.int().min(1_000).optional(),
  /** So long after its last event an archived conversation is deleted with its threads, ms; nothing is exported. */
  deleteAfterMs: z.int().min(1_000).optional(),
});

/** Parts of a definition: who is heard, by whom, and when. */
export const CoordinationSettings = {
  trust: TrustSettings.optional(),
  /** Who hears what a person says to nobody in particular; where it finds nobody, `defaults.respondWhenUnaddressed` does. */
  routing: RoutingSettings.optional(),
  schedules: Schedules.optional(),
  lifecycle: LifecycleSettings.optional(),
};

export interface CoordinationInput {
  /** Whose words wake agents. Default: everybody's. */
  trust?: z.input<typeof TrustSettings> | undefined;
  /** Who hears what a person says to nobody in particular. */
  routing?: z.input<typeof RoutingSettings> | undefined;
  /** What is said to agents at certain times. */
  schedules?: z.input<typeof Schedules> | undefined;
  /** When conversations end by themselves. Default: never. */
  lifecycle?: z.input<typeof LifecycleSettings> | undefined;
}

type Ids = readonly (string | undefined)[];

/** Whatever names agents that nobody is. */
export function* coordinationProblems(
  { routing, schedules }: { routing?: unknown; schedules?: unknown },
  agents: Ids,
  templates: Ids,
): Generator<{ path: PropertyKey[]; message: string }> {
  const isKnown = (agent: string) => agents.includes(agent) || templates.includes(templateOf(agent) ?? '');
  yield* templateProblems(templates, agents);
  yield* routingProblems(routing, isKnown);
  yield* scheduleProblems(schedules, isKnown);
}

/** What a conversation can be taken through, one step after the other. */
const WorkflowSettings = z.strictObject({
  id: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'a workflow id is 1 to 64 of A-Z a-z 0-9 _ -'),
  /** Purpose of a run that names none. */
  directive: z.string().min(1).optional(),
  steps: z.array(RunStep).min(1, 'a workflow needs at least one step').max(200),
});
export const Workflows = z.array(WorkflowSettings).max(1_000);

const Text = z.string().optional().catch(undefined);
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

/** An id that is used twice, an agent that nobody is, a step that its agent could not end. */
export function* workflowProblems(
  settings: unknown,
  toolsOf: (agent: string) => readonly (string | undefined)[] | null,
): Generator<{ path: PropertyKey[]; message: string }> {
  const workflows = Sketch.parse(settings);
  for (const [index, { id, steps }] of workflows.entries()) {
    const path = ['workflows', index];
    if (id !== undefined && workflows.findIndex((each) => each.id === id) !== index)
      yield { path: [...path, 'id'], message: `"${id}" is used twice` };
    for (const [at, step] of steps.entries()) {
      const where = [...path, 'steps', at];
      if (step.id !== undefined && steps.findIndex((each) => each.id === step.id) !== at)
        yield { path: [...where, 'id'], message: `"${step.id}" is used twice` };
      if (!AgentId.safeParse(step.agent).success) continue;
      const tools = toolsOf(step.agent ?? '');
      if (!tools) yield { path: [...where, 'agent'], message: `there is no agent "${step.agent}"` };
      else if (step.completeWhen === 'tool' && !tools.includes(COMPLETE_STEP)) {
        const message = `@${step.agent} could not say that it is complete: give it the tool ${COMPLETE_STEP}`;
        yield { path: [...where, 'completeWhen'], message };
      }
    }
  }
}

/** The routing of a definition among its agents. */
export function messageRouter(
  settings: RoutingSettings | undefined,
  company: AgentRegistry,
): MessageRouter | null {
  if (!settings) return null;
  const agents = [...company.values()].map(({ profile, capabilities }) => {
    const { id, role, description } = profile;
    return { id, role, description, capabilities };
  });
  return {
    by: settings.by,
    find: (message, place) => routeBy(settings, message, { ...place, agents }),
  };
}

/** `coder-1`, of the template `coder`. Not one more, so that what is made of a name is bounded. */
const SPAWNED = /^(.+)-[1-9]\d{0,2}$/;

export function templateOf(id: string): AgentId | null {
  return (SPAWNED.exec(id)?.[1] ?? null) as AgentId | null;
}

/** Names of templates that would be taken for agents, or the other way round. */
export function* templateProblems(
  templates: readonly (string | undefined)[],
  agents: readonly (string | undefined)[],
): Generator<{ path: PropertyKey[]; message: string }> {
  for (const [index, id] of templates.entries()) {
    if (id === undefined) continue;
    const path = ['templates', index, 'id'];
    if (agents.includes(id)) yield { path, message: `"${id}" is an agent` };
    if (templates.indexOf(id) !== index) yield { path, message: `"${id}" is used twice` };
    const taken = agents.find((agent) => agent !== undefined && templateOf(agent) === id);
    if (taken !== undefined)
      yield { path, message: `its agents are called ${id}-1, ${id}-2, …, and "${taken}" is one` };
  }
}
