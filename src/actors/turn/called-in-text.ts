/**
 * Beginnings of calls as models write them for their own templates. A server that does not read them passes them on as text: Hermes and
 * Qwen, Llama, Mistral, Granite, Phi, Kimi, DeepSeek, GLM, MiniMax, gpt-oss, LM Studio, InternLM, Gemini, and the steps of ReAct.
 */
const MARKS =
  /<\|?(?:tool_calls?|function_calls?|tool_use|tool|function|invoke|action_start|tool_calls_section_begin|tool_call_begin|python_tag|(?:minimax|seed):tool_call|longcat_tool_call)\b|<｜tool▁calls?▁begin|\[TOOL_(?:CALLS|REQUEST)\]|functools\[|to=functions\.|✿FUNCTION✿|```tool_(?:code|call)|^Action:/gim;
/** A name further behind a mark is not of its call. */
const NEAR = 300;
const MOST_MARKS = 16;
/** Longer texts are read for marks alone. */
const MOST_JSON = 65_536;
const SIGN = /[\w-]/;

/** The tool that a text calls, where calls are made otherwise; null if it calls none. */
export function calledInText(text: string, tools: readonly string[]): string | null {
  if (tools.length === 0 || text === '') return null;
  let marks = 0;
  for (const { index } of text.matchAll(MARKS)) {
    const near = text.slice(index, index + NEAR);
    const named = tools.find((name) => hasName(near, name));
    if (named !== undefined) return named;
    if ((marks += 1) === MOST_MARKS) break;
  }
  return text.length > MOST_JSON ? null : (calledInJson(text, tools) ?? calledInPython(text, tools));
}

function hasName(text: string, name: string): boolean {
  const at = text.indexOf(name);
  return at > 0 && !SIGN.test(text[at - 1] ?? '') && !SIGN.test(text[at + name.length] ?? '');
}

/** `{"name": "save", "arguments": {…}}` and its like, alone or behind words. */
function calledInJson(text: string, tools: readonly string[]): string | null {
  if (!tools.some((name) => text.includes(`"${name}"`))) return null;
  const begin = text.search(/[{[]/);
  const end = Math.max(text.lastIndexOf('}'), text.lastIndexOf(']')) + 1;
  let value: unknown;
  try {
    value = JSON.parse(text.slice(begin, end));
  } catch {
    return null; // Words that have brackets.
  }
  const [first] = [value].flat() as unknown[];
  if (typeof first !== 'object' || first === null) return null;
  const call = first as Record<string, unknown>;
  const inner = typeof call['function'] === 'object' ? (call['function'] as Record<string, unknown>) : {};
  const name = call['name'] ?? call['tool'] ?? call['tool_name'] ?? call['action'] ?? inner?.['name'];
  const hasArgs = ['arguments', 'parameters', 'args', 'input', 'action_input'].some(
    (field) => field in call || (inner && field in inner),
  );
  return hasArgs && tools.includes(name as string) ? (name as string) : null;
}

/** `[save(to="disk")]`, and nothing else. */
function calledInPython(text: string, tools: readonly string[]): string | null {
  const whole = text.trim();
  const name = /^\[?([\w.-]{1,64})\(/.exec(whole)?.[1];
  return name !== undefined && tools.includes(name) && /\)\]?$/.test(whole) ? name : null;
}
