import type {
  AgentKeys,
  AgentKeysParts,
  Clock,
  Integration,
  NostrPackage,
  NostrStatus,
  RelayReport,
} from './troupe.ts';
import type * as exported from './index.ts';
import type { Nostr } from './open-nostr.ts';
import { type NostrInput, type NostrSettings, parseSettings } from './settings.ts';

export type { NostrInput, NostrSettings } from './settings.ts';

/**
 * Connects the agents of a troupe with Nostr relays. Throws `config_invalid` for settings that are not valid.
 *
 *     await createTroupe({ agents }, { integrations: [nostr({ relays: ['wss://relay.example'] })] });
 */
export function nostr(input: NostrInput): Integration & { status(): NostrStatus | null } {
  const settings = parseSettings(input);
  let running: Nostr | null = null;
  let agents: readonly { id: string; name: string }[] = [];
  return {
    name: 'nostr',
    secretVariables: variablesOf(settings),
    async start({ troupeOf, keyValueOf, clock, random, env, owner, metrics, onWarning }) {
      const troupe = troupeOf();
      ({ agents } = troupe);
      const { openNostr } = await import('./open-nostr.ts');
      running = await openNostr({
        troupe,
        settings,
        agents: troupe.agents,
        keyValue: keyValueOf(),
        clock,
        random,
        env,
        owner,
        onWarning,
        counted: (outcome) => metrics.count('nostr_published', { outcome }),
        heard: (reason) =>
          reason === null ? metrics.count('nostr_received', {}) : metrics.count('nostr_refused', { reason }),
      });
    },
    async readable(text, nameOf) {
      if (!text.includes('nostr:')) return text;
      const { readReferences } = await import('./nostr-event.ts');
      const keys = Object.entries(running?.status().agents ?? {});
      const ownName = (pubkey: string) => {
        const [id] = keys.find(([, key]) => key === pubkey) ?? [];
        return agents.find((agent) => agent.id === id)?.name ?? null;
      };
      return readReferences(text, (pubkey) => ownName(pubkey) ?? nameOf(pubkey));
    },
    status: () => running?.status() ?? null,
    close: async () => running?.close(),
  };
}

function variablesOf({ keys }: NostrSettings): string[] {
  return Object.values(keys).flatMap((source) => (typeof source === 'string' ? [] : Object.values(source)));
}

/** Loads the cryptography on the first call. */
export async function openAgentKeys(parts: AgentKeysParts): Promise<AgentKeys> {
  return (await import('./agent-keys.ts')).createAgentKeys(parts);
}

export async function probeRelay(url: string, parts: { clock: Clock }): Promise<RelayReport> {
  return (await import('./probe-relay.ts')).probeRelay(url, parts);
}

// The core loads this module by name and relies on these exports.
({}) as typeof exported satisfies NostrPackage;
