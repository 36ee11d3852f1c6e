import * as z from 'zod';
import {
  acceptedContent,
  inputRequired,
  type InputRequiredResult,
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  type McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { Outcome, Waiting } from './outcome.ts';
import { type CommandInput, TroupeError } from '../troupe.ts';

/** Clients are asked so often within one call. The protocol's library ends the call after eight rounds. */
const MOST_ROUNDS = 6;

const Asked = z.object({
  kind: z.enum(['question', 'approval']),
  conversation: z.string(),
  id: z.string(),
});

/**
 * What a call goes on with after its client's user was asked. It comes back from the client, which may have changed it:
 * what it names is looked up and decided as the caller, so it gives no rights.
 */
const CallState = z.object({
  id: z.string(),
  round: z.int().positive(),
  asked: z.array(Asked).max(100),
});
export type CallState = z.infer<typeof CallState>;

const Decision = z.object({
  approved: z.boolean().meta({ title: 'Approve the call' }),
  note: z.string().optional().meta({ title: 'A note for the agent' }),
});

/** Undefined: the call is new. Throws `event_invalid`. */
export function callState(text: string | undefined): CallState | undefined {
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  const state = CallState.safeParse(value);
  if (state.success) return state.data;
  throw new TroupeError('event_invalid', 'requestState is not one that this server has given', {
    path: 'requestState',
  });
}

/** Asks the client's user for what the outcome waits for. Null: there is nothing to ask, or it was asked too often. */
export function askPeople(outcome: Outcome, round: number): InputRequiredResult | null {
  const asked = outcome.waits.flatMap((wait) => (wait.kind === 'delegation' ? [] : [wait]));
  if (asked.length === 0 || round > MOST_ROUNDS) return null;
  const state: CallState = {
    id: outcome.id,
    round,
    asked: asked.map(({ kind, conversation, id }) => ({ kind: kind as 'question', conversation, id })),
  };
  return inputRequired({
    inputRequests: Object.fromEntries(asked.map((wait) => [wait.id, formFor(wait)])),
    requestState: JSON.stringify(state),
  });
}

function formFor({ kind, agent, text = '', choices, tool = '', args = '' }: Waiting) {
  if (kind === 'approval') {
    const message = `@${agent} wants to call ${tool} ${args}`;
    return inputRequired.elicit({ message, requestedSchema: Decision });
  }
  const answer = choices?.length ? z.enum(choices) : z.string();
  return inputRequired.elicit({
    message: `@${agent} asks: ${text}`,
    requestedSchema: z.object({ answer: answer.meta({ title: 'Answer' }) }),
  });
}

/** The commands that say what the client's user has answered. What was declined stays open. */
export function commandsOf(
  { asked }: CallState,
  responses: Record<string, unknown> | undefined,
): CommandInput[] {
  return asked.flatMap(({ kind, conversation, id }): CommandInput[] => {
    if (kind === 'question') {
      const said = acceptedContent(responses, id, z.object({ answer: z.string() }));
      return said ? [{ command: 'answer', conversation, question: id, content: said.answer }] : [];
    }
    const decision = acceptedContent(responses, id, Decision);
    return decision ? [{ command: 'decide', conversation, request: id, ...decision }] : [];
  });
}

/** Whether a client can ask its user something. The newer protocol tells what a client can do with each request, the older one at the beginning of the session. */
export function canAsk({ server }: McpServer, { mcpReq }: ServerContext): boolean {
  const envelope = mcpReq.envelope as Record<string, unknown> | undefined;
  const told = envelope?.[CLIENT_CAPABILITIES_META_KEY] as ClientCapabilities | undefined;
  return (told ?? server.getClientCapabilities())?.elicitation !== undefined;
}
