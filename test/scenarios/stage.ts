import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import type { ConversationId, Event } from '../../src/events/index.ts';
import type { TroupeOptions } from '../../src/library/runtime/create-troupe.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { ROOM, UMA } from '../support/company.ts';
import { openTroupe } from '../support/mode.ts';

type AgentInput = TroupeInput['agents'][number];
type Script = Extract<AgentInput, { provider: 'scripted' }>['script'];

/** An agent on a scripted model that answers `ok`, unless `rules` differ. */
export function scripted(id: string, more: Partial<AgentInput> = {}, rules: object[] = []): AgentInput {
  const script = { rules: [...rules, { reply: 'ok' }] } as Script;
  return { id, provider: 'scripted', model: 'm', script, ...more } as AgentInput;
}

export interface ScriptedRoom extends AsyncDisposable {
  troupe: Troupe;
  say(to: string, content: string): Promise<void>;
  /** The lines of the reminder of an agent's turn. */
  reminders(agent: string, turn: number): Promise<string[]>;
  /** The system message of an agent's turn. */
  system(agent: string, turn: number): Promise<string>;
  events<K extends Event['kind']>(kind: K): Promise<Extract<Event, { kind: K }>[]>;
}

/** One conversation of a company with scripted models; prompts are read as they were sent, and verified. */
export async function scriptedRoom(
  definition: TroupeInput,
  options: TroupeOptions = {},
): Promise<ScriptedRoom> {
  const troupe = await openTroupe(definition, options);
  async function sent(agent: string, turn: number) {
    const prompt = await troupe.promptOf(`${ROOM}:${agent}:${turn}`);
    if (!prompt.verified) throw new Error(`turn ${turn} of @${agent} is not rendered as it was sent`);
    return prompt.messages;
  }
  return {
    troupe,
    async say(to, content) {
      await troupe.send(ROOM, { author: UMA, to: [to], content });
      await troupe.idle();
    },
    async reminders(agent, turn) {
      const last = (await sent(agent, turn)).findLast(({ role }) => role === 'user');
      const [, lines = ''] = /\n\[reminder #\d{6}\]\n([^]*)\n#\d{6}$/.exec(last?.content ?? '') ?? [];
      return lines.split('\n');
    },
    system: async (agent, turn) => (await sent(agent, turn))[0]?.content ?? '',
    async events<K extends Event['kind']>(kind: K) {
      const { events } = await troupe.events(ROOM);
      return events.filter((event): event is Extract<Event, { kind: K }> => event.kind === kind);
    },
    [Symbol.asyncDispose]: () => troupe.close(),
  };
}

export const ROOM_ID = ROOM as ConversationId;
