/**
 * The share of a text that is tool calls written out as prose. A mark counts only at the start of a line and before a
 * call, so prose about such marks stays prose.
 */
export function toolSyntaxShare(text: string): number {
  const total = weigh(text);
  if (total === 0) return 0;
  // Computed once: doing it per call would be quadratic.
  const lower = text.toLowerCase();
  let calls = 0;
  let at = 0;
  while (at < text.length) {
    const end = callEnd(text, lower, at);
    if (end === null) {
      const newline = text.indexOf('\n', at);
      at = newline < 0 ? text.length : newline + 1;
    } else {
      calls += weigh(text.slice(at, end));
      at = end;
    }
  }
  return calls / total;
}

function weigh(text: string): number {
  return text.replace(/\s+/g, '').length;
}

/** What follows a mark before a call: JSON, another tag, or a function name before one of them. */
const CALL_FOLLOWS = String.raw`(?=\s*(?:[{[<]|[\w.:-]{1,64}\s*[{[(<]|$))`;

/** Sticky, at the start of a line. The first group names the closing tag; without one the call extends to the end. */
const MARKS: readonly RegExp[] = [
  `<((?:[a-z]{1,10}:)?(?:tool_?calls?|function_?calls?|tool_use|tool_code|invoke))(?:\\s[^>\\n]*)?>${CALL_FOLLOWS}`,
  `<(function)=[\\w.:-]{1,64}>`,
  String.raw`(?:<[|｜])(?:tool|python_tag|channel|start|message)[^|｜\n]{0,40}[|｜]>(?=\s*(?:[{[<]|[\w.:-]{1,64}\s*[{[(<]|import\s|from\s|(?:commentary|assistant)\b|$))`,
  String.raw`\[(?:TOOL_CALLS?|TOOL_REQUEST)\]${CALL_FOLLOWS}`,
].map((mark) => new RegExp(`[ \\t]*${mark}`, 'iy'));

const CODE = /[ \t]*```(?:tool_?calls?|tool_code|function_?calls?)[ \t]*\n/iy;
const JSON_START = /[ \t]*(?:```(?:json)?[ \t]*\n\s*)?(?=[{[])/iy;

/** The end of a call that begins at `start`, the start of a line; null if none does. */
function callEnd(text: string, lower: string, start: number): number | null {
  for (const mark of MARKS) {
    const match = matchAt(mark, text, start);
    if (match) return match[1] ? endOf(lower, start, `</${match[1].toLowerCase()}>`) : text.length;
  }
  const code = matchAt(CODE, text, start);
  if (code) return endOf(lower, start + code[0].length, '```');
  const json = matchAt(JSON_START, text, start);
  return json && jsonCallEnd(text, start + json[0].length);
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function endOf(lower: string, from: number, closing: string): number {
  const found = lower.indexOf(closing, from);
  return found < 0 ? lower.length : found + closing.length;
}

const NAME = String.raw`"(?:name|tool|tool_name|function|recipient_name|action)"\s*:\s*"[\w.:/-]+"`;
const ARGUMENTS = String.raw`"(?:arguments|parameters|input|args|tool_input|action_input)"\s*:`;
/** The start of a call in JSON, complete or broken off: a name beside arguments, or a wrapper of such. */
const JSON_CALL = new RegExp(
  String.raw`(?:\[\s*)?\{\s*(?:"(?:id|type)"\s*:\s*"[^"\n]*"\s*,\s*)*(?:${NAME}\s*,\s*${ARGUMENTS}|"tool_calls"\s*:\s*\[|"(?:function|function_call)"\s*:\s*\{|${ARGUMENTS}\s*(?:\{[^{}]*\}|"(?:[^"\\]|\\.)*")\s*,\s*${NAME})`,
  'y',
);

function jsonCallEnd(text: string, start: number): number | null {
  return matchAt(JSON_CALL, text, start) ? closingBracket(text, start) : null;
}

/** The place behind the bracket that closes the one at `start`, or the end of the text. */
function closingBracket(text: string, start: number): number {
  let depth = 0;
  let inString = false;
  for (let at = start; at < text.length; at += 1) {
    const char = text[at];
    if (inString) {
      if (char === '\\') at += 1;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === '{' || char === '[') depth += 1;
    else if (char === '}' || char === ']') depth -= 1;
    if (depth === 0) return at + 1;
  }
  return text.length;
}
