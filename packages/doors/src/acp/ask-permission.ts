import { type AgentContext, methods, type RequestPermissionRequest } from '@agentclientprotocol/sdk';
import type { StdioParts } from '../stdio-parts.ts';
import { type Event, type EventOf, type Troupe, TroupeError } from '../troupe.ts';

export type Approval = EventOf<'approval.requested'>;

/** The editor that waits for an answer. */
export interface Editor {
  client: AgentContext;
  signal: AbortSignal;
}

const ALLOW = { optionId: 'allow', name: 'Allow', kind: 'allow_once' } as const;
const REJECT = { optionId: 'reject', name: 'Reject', kind: 'reject_once' } as const;

/**
 * Asks the editor whether a call may be made, unless somebody else decides first. Returns the event of the decision. Null:
 * nobody has decided.
 */
export async function askPermission(
  { troupe, author }: Pick<StdioParts, 'troupe' | 'author'>,
  { conversation, body }: Approval,
  { session, editor }: { session: string; editor: Editor },
): Promise<Event | null> {
  const { request, argsHash } = body;
  const elsewhere = new AbortController();
  const unwatch = troupe.watch(
    (note) => {
      if (note.type === 'event' && isDecision(note.event, request)) elsewhere.abort();
    },
    { conversation },
  );
  try {
    const ended = AbortSignal.any([editor.signal, elsewhere.signal]);
    const approved = await permission(body, { session, client: editor.client, ended });
    if (approved === null) return await decisionOf(troupe, conversation, request);
    return await troupe.command({ command: 'decide', conversation, request, approved, argsHash }, author);
  } catch (error) {
    const isLate = error instanceof TroupeError && error.code === 'command_refused';
    if (isLate) return decisionOf(troupe, conversation, request);
    throw error;
  } finally {
    unwatch();
  }
}

/** Null: the editor does not say, or need not say any more. */
async function permission(
  { request, tool, args }: Approval['body'],
  { session, client, ended }: { session: string; client: AgentContext; ended: AbortSignal },
): Promise<boolean | null> {
  const params: RequestPermissionRequest = {
    sessionId: session,
    toolCall: {
      toolCallId: request,
      title: `Call ${tool}`,
      kind: 'other',
      status: 'pending',
      rawInput: parsed(args),
    },
    options: [ALLOW, REJECT],
  };
  try {
    const { outcome } = await client.request(methods.client.session.requestPermission, params, {
      cancellationSignal: ended,
      stopWaitingOnCancel: true,
    });
    return outcome.outcome === 'selected' ? outcome.optionId === ALLOW.optionId : null;
  } catch (error) {
    if (ended.aborted) return null;
    throw error;
  }
}

async function decisionOf(troupe: Troupe, conversation: string, request: string): Promise<Event | null> {
  const { tasks } = await troupe.tasks(conversation);
  const end = tasks.find(({ id }) => id === request)?.end;
  if (!end) return null;
  const { events } = await troupe.events(conversation, { after: end.seq - 1, limit: 1 });
  return events[0] ?? null;
}

function isDecision(event: Event, request: string): boolean {
  return event.kind === 'approval.decided' && event.body.request === request;
}

function parsed(args: string): unknown {
  try {
    return JSON.parse(args);
  } catch {
    return args;
  }
}
