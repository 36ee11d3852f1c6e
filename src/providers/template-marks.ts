import type { PromptMessage, ToolCall } from '../events/index.ts';

/**
 * Marks that a vendor's chat template or client would take for its own. In a request they arrive with a backslash behind
 * their first sign, so that nobody but the template opens a role: `<\|im_start|>`. The break is visible and one sign, as
 * everywhere in prompts; a text that has backslashes there gets one more, so an answer can be read back without loss, and
 * somebody who works on templates gets calls and words with the real marks.
 */
export type MarkFamily =
  /** Special tokens such as `<|im_start|>`, `<|eot_id|>` and `<｜User｜>`. */
  | 'tokens'
  /** `[INST]`, `<<SYS>>`, `<start_of_turn>`, `</s>`, and tags that templates read, such as `<think>`. */
  | 'templates'
  /** `Human:` and `Assistant:` behind an empty line. */
  | 'speakers'
  /** Tags of Claude Code and Codex, such as `<system-reminder>` and `<command-name>`. */
  | 'clients';

/** Each with its first sign, and what follows it. Bounded, so that they take linear time. */
const FAMILIES: Record<
  MarkFamily,
  readonly (readonly [first: string, rest: string, firstInJson?: string])[]
> = {
  tokens: [['<', String.raw`[|｜][^|｜<>\s]{1,64}[|｜]>`]],
  templates: [
    [
      '<',
      String.raw`\/?(?:s|bos|eos|start_of_turn|end_of_turn|start_of_image|end_of_image|think|tool_call|tool_response)>`,
    ],
    ['<', String.raw`<\/?SYS>>`],
    [
      String.raw`\[`,
      String.raw`\/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|THINK|gMASK)\]`,
    ],
  ],
  speakers: [
    [
      String.raw`(?<![^\n]|[^\n\r]\r?\n)(?:Human|Assistant)`,
      ':',
      String.raw`(?<="|\\n(?:\\r)?\\n)(?:Human|Assistant)`,
    ],
  ],
  clients: [
    [
      '<',
      String.raw`\/?(?:system-reminder|command-(?:name|message|args|contents)|local-command-\w{1,32}|bash-(?:input|stdout|stderr)|user-prompt-submit-hook|task-notification|teammate-message|user_instructions|environment_context|turn_aborted|user_shell_command|INSTRUCTIONS)[\s/>]`,
    ],
  ],
};

interface MarkRules {
  /** The first sign of each mark. */
  text: RegExp;
  escaped: RegExp;
  /** The same within JSON, where a backslash is two. */
  json: RegExp;
  escapedJson: RegExp;
}

function rulesFor(family: MarkFamily): MarkRules {
  const pattern = (backslashes: string, inJson: boolean) => {
    const either = FAMILIES[family].map(
      ([first, rest, json = first]) => `(?:${inJson ? json : first})(?=${backslashes}(?:${rest}))`,
    );
    return new RegExp(either.join('|'), 'giu');
  };
  return {
    text: pattern(String.raw`\\*`, false),
    escaped: pattern(String.raw`\\+`, false),
    json: pattern(String.raw`(?:\\\\)*`, true),
    escapedJson: pattern(String.raw`(?:\\\\)+`, true),
  };
}

const RULES: Record<MarkFamily, MarkRules> = {
  tokens: rulesFor('tokens'),
  templates: rulesFor('templates'),
  speakers: rulesFor('speakers'),
  clients: rulesFor('clients'),
};

/** The request with the marks of these families as plain text. The system message is the runtime's own. */
export function withPlainMarks<R extends { messages: readonly PromptMessage[] }>(
  request: R,
  families: readonly MarkFamily[] = [],
): R {
  if (families.length === 0) return request;
  return { ...request, messages: request.messages.map((message) => plainMessage(message, families)) };
}

/** Messages never change and are sent again with each request. */
const plain = new WeakMap<PromptMessage, Map<string, PromptMessage>>();

function plainMessage(message: PromptMessage, families: readonly MarkFamily[]): PromptMessage {
  // Words of other agents may have the role of the system; the runtime's own are of no event.
  if (message.role === 'system' && message.seqs.length === 0) return message;
  const known = plain.get(message) ?? new Map<string, PromptMessage>();
  plain.set(message, known);
  const key = families.join();
  const made = known.get(key) ?? escapedMessage(message, families);
  known.set(key, made);
  return made;
}

function escapedMessage(message: PromptMessage, families: readonly MarkFamily[]): PromptMessage {
  const content = families.reduce((so, family) => so.replace(RULES[family].text, '$&\\'), message.content);
  if (message.role !== 'assistant' || !message.calls) {
    return content === message.content ? message : { ...message, content };
  }
  const argsOf = ({ args }: ToolCall) =>
    families.reduce((so, family) => so.replace(RULES[family].json, '$&\\\\'), args);
  return { ...message, content, calls: message.calls.map((call) => ({ ...call, args: argsOf(call) })) };
}

/** A model's words about marks that it was shown escaped, as they were meant. */
export function restoredText(text: string, families: readonly MarkFamily[] = []): string {
  if (!text.includes('\\')) return text;
  return families.reduce((so, family) => restored(so, RULES[family].escaped, 1), text);
}

export function restoredCall(call: ToolCall, families: readonly MarkFamily[] = []): ToolCall {
  if (!call.args.includes('\\\\')) return call;
  const args = families.reduce((so, family) => restored(so, RULES[family].escapedJson, 2), call.args);
  return args === call.args ? call : { ...call, args };
}

/** Takes `length` signs away behind the first sign of every mark. */
function restored(text: string, marks: RegExp, length: number): string {
  let made = '';
  let at = 0;
  for (const match of text.matchAll(marks)) {
    const end = match.index + match[0].length;
    made += text.slice(at, end);
    at = end + length;
  }
  return made + text.slice(at);
}
