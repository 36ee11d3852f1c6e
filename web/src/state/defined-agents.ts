import { computed, signal } from '@preact/signals';
import type { AgentInfo } from '../../../src/library/troupe.ts';
import { api } from './api.ts';

const known = signal<readonly AgentInfo[]>([]);
let isAsked = false;

/** The agents of the definition, asked for when they are first needed. Empty until the server has answered, or if it does not. */
export const definedAgents = computed(() => {
  if (!isAsked) {
    isAsked = true;
    api.agents().then(
      ({ agents }) => (known.value = agents),
      () => undefined,
    );
  }
  return known.value;
});
