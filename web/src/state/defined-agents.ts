import { signal } from '@preact/signals';
import type { AgentInfo } from '../../../src/library/troupe.ts';
import { api } from './api.ts';

/** The agents of the definition. Empty until the server has answered, or if it does not. */
export const definedAgents = signal<readonly AgentInfo[]>([]);
void api.agents().then(
  ({ agents }) => (definedAgents.value = agents),
  () => undefined,
);
