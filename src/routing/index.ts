/** Who hears what and who takes part, decided from outside of the engine. */
export {
  createOrchestrator,
  type Orchestrator,
  type OrchestratorOptions,
  type Rule,
} from './orchestrator.ts';
export type { Unaddressed } from './route.ts';
export type { RoutingRule, RoutingSettings } from './routing-settings.ts';
