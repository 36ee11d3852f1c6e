import * as z from 'zod';
import { RoutingSettings, routingProblems } from '../routing/routing-settings.ts';
import { scheduleProblems, Schedules } from './schedule-settings.ts';
import { templateOf, templateProblems } from './spawned-company.ts';

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
