/** A message as an OpenAI-compatible server receives it. */
export interface WireMessage {
  role: 'system' | 'user' | 'assistant' | 'tool';
  content: string | null;
  tool_calls?: { id: string; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

const REMINDER = /\n*\[(?:reminder #(\d{6})\]\n([\s\S]*?)\n#\1|([\d :-]+(?: \([^()\n]*\) #\d{6})?)\]$)/gm;
/** The time behind a speaker, or in place of one. */
const TIME = /^(\[[^\]\n]*?) ?\b(?:(?:\d{4}-)?\d\d-\d\d )?\d\d:\d\d(?=[\] ])/gm;

/** One message as one line: marked words as «», the block as away{…}, calls as name#id, synthetic results as (interrupted). */
export function compact(message: WireMessage): string {
  const text = (message.content ?? '')
    .replace(REMINDER, '')
    .replace(TIME, '$1')
    .replace(
      /^\[([^\]\n]*?) (handed this conversation over to you|began the phase [^\]\n]*) #(\d{6})\]\n([\s\S]*?)\n#\3/gm,
      '[$1] $2: handoff{$4}',
    )
    .replace(/^\[((?!new )[^\]\n]*) #(\d{6})\]\n([\s\S]*?)\n#\2/gm, '[$1] «$3»')
    .replace(/^\[new #\d{6}\]\n([\s\S]*?)\n#$/gm, 'away{$1}')
    .replace(/^\[no result was recorded: the call was interrupted[\s\S]*$/, '(interrupted)')
    .replaceAll('\n', ' ');
  const calls = (message.tool_calls ?? []).map(({ id, function: { name } }) => `${name}#${id}`).join(' ');
  const of = message.tool_call_id === undefined ? '' : ` #${message.tool_call_id}`;
  return `${message.role}${of}: ${[text, calls].filter(Boolean).join(' + ')}`;
}

/** The reminders of a message, without their marks. */
export function reminders({ content }: WireMessage): string[] {
  return [...(content ?? '').matchAll(REMINDER)].map(([, , items, time]) =>
    items === undefined ? `time: ${time}` : items.split('\n').join('; '),
  );
}
