/** A message as an OpenAI-compatible server receives it. */
export interface WireMessage {
  role: 'system' | 'user' | 'assistant' | 'tool';
  content: string | null;
  tool_calls?: { id: string; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

const REMINDER = /\n*<reminder-[0-9a-f]{8}>\n[\s\S]*?\n<\/reminder-[0-9a-f]{8}>/g;

/** One message as one line: fences as «», the block as away{…}, calls as name#id, synthetic results as (interrupted). */
export function compact(message: WireMessage): string {
  const text = (message.content ?? '')
    .replace(REMINDER, '')
    .replace(/<msg-[0-9a-f]{8}>\n([\s\S]*?)\n<\/msg-[0-9a-f]{8}>/g, '«$1»')
    .replace(/<handoff-[0-9a-f]{8}>\n([\s\S]*?)\n<\/handoff-[0-9a-f]{8}>/g, 'handoff{$1}')
    .replace(/<missed-[0-9a-f]{8}>\nWhile you were away:\n([\s\S]*?)\n<\/missed-[0-9a-f]{8}>/g, 'away{$1}')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\dZ /g, '')
    .replace(/^\[no result was recorded: the call was interrupted[\s\S]*$/, '(interrupted)')
    .replaceAll('\n', ' ');
  const calls = (message.tool_calls ?? []).map(({ id, function: { name } }) => `${name}#${id}`).join(' ');
  const of = message.tool_call_id === undefined ? '' : ` #${message.tool_call_id}`;
  return `${message.role}${of}: ${[text, calls].filter(Boolean).join(' + ')}`;
}

/** The reminders of a message, without their fences. */
export function reminders({ content }: WireMessage): string[] {
  return [...(content ?? '').matchAll(REMINDER)].map(([block]) =>
    block.trim().split('\n').slice(1, -1).join('; '),
  );
}
