import type { PromptMessage, ToolCall, ToolSpec } from '../events/index.ts';

/**
 * Marks that a vendor's chat template or client would read as its own. Requests carry them with a backslash after the first
 * character, so that only the template itself can open a role: `<\|im_start|>`. The escape is visible and one character long,
 * as everywhere in prompts. A text that already has backslashes there gets one more, so an answer can be restored without
 * loss: people who work on templates see calls and text with the real marks.
 */
export type MarkFamily =
  /** Special tokens such as `<|im_start|>`, `<|eot_id|>` and `<｜User｜>`. */
  | 'tokens'
  /** `[INST]`, `<<SYS>>`, `<start_of_turn>`, `</s>`, and tags that templates read, such as `<think>`. */
  | 'templates'
  /** `Human:` and `Assistant:` after an empty line. */
  | 'speakers'
  /** Tags of Claude Code and Codex, such as `<system-reminder>` and `<command-name>`. */
  | 'clients';

/** In angle brackets: ends of texts and turns, thoughts and calls, in the templates of Llama, Gemma, Qwen, GLM, Seed and others. */
const TEMPLATE_TAGS = [
  's|bos|eos|unk|pad|sop|eop',
  'think|tools|tool_calls?|tool_responses?|arg_key|arg_value',
  '(?:start|end)_of_(?:turn|image)',
  '(?:start|end)_function_(?:call|response|declaration)',
  String.raw`(?:seed|minimax):\w{1,32}`,
];
/** In square brackets: Mistral, GLM, Kimi. */
const TEMPLATE_WORDS =
  'INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|MODEL_SETTINGS|THINK|gMASK|BOS|EOS|EOT';
const CLIENT_TAGS = [
  String.raw`system-reminder|command-(?:name|message|args|contents)|local-command-\w{1,32}|bash-(?:input|stdout|stderr)`,
  'user-prompt-submit-hook|session-start-hook|task-notification|teammate-message|persisted-output|new-diagnostics',
  String.raw`ide_(?:opened_file|selection)|function_(?:calls|results)|antml:\w{1,32}|system_warning|budget:\w{1,32}`,
  'user_instructions|environment_context|turn_aborted|user_shell_command|INSTRUCTIONS|permissions|collaboration_mode',
  'subagent_notification|skills_instructions|model_switch|personality_spec',
];

/** Characters that end the name of a tag. In JSON a line end is an escape. */
const AFTER_TAG = String.raw`[\s/>]`;
const AFTER_TAG_IN_JSON = String.raw`(?:[\s/>]|\\[nrt])`;

/** The first character of each mark, and what follows it. Lengths are bounded, so that matching takes linear time. */
const FAMILIES: Record<
  MarkFamily,
  readonly (readonly [first: string, rest: string, firstInJson?: string])[]
> = {
  tokens: [['<', String.raw`[|｜][^|｜<>\s]{1,64}[|｜]>`]],
  templates: [
    ['<', String.raw`\/?(?:${TEMPLATE_TAGS.join('|')})>`],
    ['<', String.raw`<\/?SYS>>`],
    [String.raw`\[`, String.raw`\/?(?:${TEMPLATE_WORDS})\]`],
  ],
  speakers: [
    [
      String.raw`(?<![^\n]|[^\n\r]\r?\n)(?:Human|Assistant)`,
      ':',
      String.raw`(?<="|\\n(?:\\r)?\\n)(?:Human|Assistant)`,
    ],
  ],
  clients: [['<', String.raw`\/?(?:${CLIENT_TAGS.join('|')})${AFTER_TAG}`]],
};

interface MarkRules {
  /** Matches the first character of each mark. */
  text: RegExp;
  escaped: RegExp;
  /** The same within JSON, where a backslash is written twice. */
  json: RegExp;
  escapedJson: RegExp;
}

function rulesFor(family: MarkFamily): MarkRules {
  const pattern = (backslashes: string, inJson: boolean) => {
    const either = FAMILIES[family].map(([first, rest, json = first]) =>
      inJson
        ? `(?:${json})(?=${backslashes}(?:${rest.replace(AFTER_TAG, AFTER_TAG_IN_JSON)}))`
        : `(?:${first})(?=${backslashes}(?:${rest}))`,
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

/**
 * The request with the marks of these families escaped, wherever they stand: in messages, in the system message (which holds
 * names, instructions and files of people), in descriptions and schemas of tools, and in the reply schema.
 */
export function withPlainMarks<R extends Marked>(request: R, families: readonly MarkFamily[] = []): R {
  if (families.length === 0) return request;
  const { messages, tools, replySchema } = request;
  return {
    ...request,
    messages: messages.map((message) => plainOnce(message, families, plainMessage)),
    tools: tools.map((tool) => plainOnce(tool, families, plainTool)),
    ...(replySchema && { replySchema: plainOnce(replySchema, families, plainJson) }),
  };
}

interface Marked {
  messages: readonly PromptMessage[];
  tools: readonly ToolSpec[];
  replySchema?: Record<string, unknown>;
}

/** Cached, because parts of requests never change and are sent again with each request. */
const plain = new WeakMap<object, Map<string, object>>();

function plainOnce<T extends object>(
  part: T,
  families: readonly MarkFamily[],
  make: (part: T, families: readonly MarkFamily[]) => T,
): T {
  const known = plain.get(part) ?? new Map<string, object>();
  plain.set(part, known);
  const key = families.join();
  const made = known.get(key) ?? make(part, families);
  known.set(key, made);
  return made as T;
}

function plainText(text: string, families: readonly MarkFamily[]): string {
  return families.reduce((so, family) => so.replace(RULES[family].text, '$&\\'), text);
}

function plainArgs(json: string, families: readonly MarkFamily[]): string {
  const written = spelledOut(json);
  const made = families.reduce((so, family) => so.replace(RULES[family].json, '$&\\\\'), written);
  return made === written ? json : made;
}

const JSON_ESCAPE = /\\(?:u([0-9a-f]{4})|[^u])/gi;
const BARE_SIGN = /[ !#-[\]-~｜]/;

/** The JSON with no character of a mark written as an escape: templates may read the value, not the text. */
function spelledOut(json: string): string {
  if (!json.includes('\\u') && !json.includes('\\/')) return json;
  return json.replace(JSON_ESCAPE, (escape, code?: string) => {
    if (code === undefined) return escape === '\\/' ? '/' : escape;
    const sign = String.fromCharCode(Number.parseInt(code, 16));
    return BARE_SIGN.test(sign) ? sign : escape;
  });
}

function plainJson<T extends object>(value: T, families: readonly MarkFamily[]): T {
  const json = JSON.stringify(value);
  const made = plainArgs(json, families);
  return made === json ? value : (JSON.parse(made) as T);
}

function plainTool(tool: ToolSpec, families: readonly MarkFamily[]): ToolSpec {
  const description = plainText(tool.description, families);
  return { ...tool, description, parameters: plainJson(tool.parameters, families) };
}

function plainMessage(message: PromptMessage, families: readonly MarkFamily[]): PromptMessage {
  const content = plainText(message.content, families);
  if (message.role !== 'assistant') return content === message.content ? message : { ...message, content };
  const { calls, reasoning } = message;
  return {
    ...message,
    content,
    ...(calls && { calls: calls.map((call) => ({ ...call, args: plainArgs(call.args, families) })) }),
    // Signed reasoning must not change.
    ...(reasoning &&
      reasoning.signature === undefined && {
        reasoning: { ...reasoning, text: plainText(reasoning.text, families) },
      }),
  };
}

/** The model's text with the marks restored that it was shown escaped. */
export function restoredText(text: string, families: readonly MarkFamily[] = []): string {
  if (!text.includes('\\')) return text;
  return families.reduce((so, family) => restored(so, RULES[family].escaped, 1), text);
}

export function restoredCall(call: ToolCall, families: readonly MarkFamily[] = []): ToolCall {
  const args = restoredArgs(call.args, families);
  return args === call.args ? call : { ...call, args };
}

function restoredArgs(args: string, families: readonly MarkFamily[]): string {
  if (!args.includes('\\\\')) return args;
  return families.reduce((so, family) => restored(so, RULES[family].escapedJson, 2), args);
}

/** Removes `length` characters after the first character of every mark. */
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

const SPEAKERS = [...prefixesOf('Human'), ...prefixesOf('Assistant')].join('|');

/** The end of a piece that may begin an escaped mark. No mark is longer. */
const UNFINISHED = {
  text: new RegExp(String.raw`[<\[](?:\\{1,64}\S{0,80})?$|(?<![^\n])(?:${SPEAKERS})\\{0,64}$`, 'iu'),
  json: new RegExp(
    String.raw`[<\[](?:\\{1,64}\S{0,80})?$|(?<="|\\n(?:\\r)?\\n)(?:${SPEAKERS})\\{0,64}$`,
    'iu',
  ),
};

function prefixesOf(word: string): string[] {
  return Array.from(word, (_, index) => word.slice(0, word.length - index));
}

/** Number of preceding characters that decide whether a mark is one. In JSON line ends are escapes. */
const BEFORE = { text: 3, json: 6 };
/** Stands for all earlier text, so that these characters do not seem to begin the text. */
const SOMETHING = 'x';

/** Restores text or JSON that arrives in pieces. The end of a piece is held back while it may begin a mark. */
export class MarkRestorer {
  readonly #families: readonly MarkFamily[];
  readonly #form: 'text' | 'json';
  #before = '';
  #waiting = '';

  constructor(families: readonly MarkFamily[], form: 'text' | 'json' = 'text') {
    this.#families = families;
    this.#form = form;
  }

  push(piece: string): string {
    const text = this.#waiting + piece;
    const at = (this.#before + text).search(UNFINISHED[this.#form]);
    const end = at === -1 ? text.length : Math.max(0, at - this.#before.length);
    this.#waiting = text.slice(end);
    return this.#restored(text.slice(0, end));
  }

  /** Returns the rest. What follows is a new text. */
  end(): string {
    const rest = this.#restored(this.#waiting);
    this.#before = '';
    this.#waiting = '';
    return rest;
  }

  #restored(text: string): string {
    const whole = this.#before + text;
    const restore = this.#form === 'text' ? restoredText : restoredArgs;
    const shown = restore(whole, this.#families).slice(this.#before.length);
    const before = BEFORE[this.#form];
    // Marks that begin here were restored or are held back: none may be found again.
    const passed = whole.slice(-before).replace(/[<[]/g, SOMETHING);
    this.#before = whole.length > before ? `${SOMETHING}${passed}` : passed;
    return shown;
  }
}
