import { type Signal, signal } from '@preact/signals';
import type { CommandOf, ConversationId } from '../../../src/events/index.ts';
import { api } from './api.ts';
import { argsOf, type ArgsForm, formOf } from './args-form.ts';
import { messageOf } from '../shared/format.ts';

type Args = NonNullable<CommandOf<'decide'>['args']>;

/** The state of a person's changes to the arguments of a call. */
export type ArgsDraft =
  | { state: 'closed' }
  | { state: 'loading' }
  | { state: 'failed'; message: string }
  /** `asked`: the arguments as the model wrote them. */
  | { state: 'open'; asked: string; form: ArgsForm };

/** What a person has typed for an approval, or as the answer to a question: its `note`. */
export interface ApprovalDraft {
  note: Signal<string>;
  args: Signal<ArgsDraft>;
  /** The editor takes the focus once it is shown. */
  wantsFocus: boolean;
}

/** Kept until the page is closed, because components come and go with live events, and when the user looks at the past. */
const drafts = new Map<string, ApprovalDraft>();

export function approvalDraft(conversation: ConversationId, request: string): ApprovalDraft {
  const key = JSON.stringify([conversation, request]);
  const draft = drafts.get(key) ?? {
    note: signal(''),
    args: signal<ArgsDraft>({ state: 'closed' }),
    wantsFocus: false,
  };
  drafts.set(key, draft);
  return draft;
}

/** Opens the editor with the complete arguments, of which the projection has only the beginning. */
export async function openArgs(
  draft: ApprovalDraft,
  { conversation, request, seq }: { conversation: ConversationId; request: string; seq: number },
): Promise<void> {
  const loading: ArgsDraft = { state: 'loading' };
  draft.wantsFocus = true;
  draft.args.value = loading;
  const loaded = await load(conversation, request, seq);
  // Closed in the meantime.
  if (draft.args.peek() === loading) draft.args.value = loaded;
}

async function load(conversation: ConversationId, request: string, seq: number): Promise<ArgsDraft> {
  try {
    const { events } = await api.events(conversation, { after: seq - 1, limit: 1 });
    const [event] = events;
    if (event?.kind !== 'approval.requested' || event.body.request !== request)
      return { state: 'failed', message: `event ${seq} is not the request` };
    const { args } = event.body;
    return { state: 'open', asked: args, form: formOf(args) };
  } catch (error) {
    return { state: 'failed', message: messageOf(error) };
  }
}

export type Decided = { state: 'asked' } | { state: 'changed'; args: Args } | { state: 'unclear' };

/** The arguments that an approval would approve. If they equal those asked for, nothing was changed. */
export function decidedArgs(draft: ArgsDraft): Decided {
  if (draft.state === 'closed') return { state: 'asked' };
  if (draft.state !== 'open') return { state: 'unclear' };
  const typed = argsOf(draft.form);
  if ('problems' in typed) return { state: 'unclear' };
  const asked = argsOf({ as: 'json', text: draft.asked });
  const isSame = 'args' in asked && JSON.stringify(asked.args) === JSON.stringify(typed.args);
  return isSame ? { state: 'asked' } : { state: 'changed', args: typed.args as Args };
}
