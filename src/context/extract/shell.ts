import type { ToolCall } from '../../events/index.ts';

const SHELLS =
  /(?:^|[_-])(?:bash|sh|shell|exec|execute|terminal|command|run|cmd|powershell)(?:$|[_-])|Bash|Shell/i;
const SHELL_FIELD = /^(?:command|cmd|script|code|commands|input)$/i;
const MAX_COMMAND = 8_000;
const MAX_DEPTH = 4;

export function isShell(tool: string): boolean {
  return SHELLS.test(tool);
}

/** Whether a field of a shell's call holds a command. */
export function isCommandField(field: string): boolean {
  return SHELL_FIELD.test(field);
}

/** The texts among a call's arguments with their field names. Texts in a list have the list's name. */
export function textsOf({ args }: ToolCall): [field: string, text: string][] {
  let root: unknown;
  try {
    root = JSON.parse(args);
  } catch {
    // The arguments are not JSON, so there is nothing to find.
    return [];
  }
  const fields: [string, string][] = [];
  const walk = (field: string, value: unknown, depth: number): void => {
    if (typeof value === 'string') fields.push([field, value]);
    else if (depth < MAX_DEPTH && Array.isArray(value))
      for (const item of value) walk(field, item, depth + 1);
    else if (depth < MAX_DEPTH && typeof value === 'object' && value !== null) {
      for (const [key, item] of Object.entries(value)) walk(key, item, depth + 1);
    }
  };
  walk('', root, 0);
  return fields;
}

const HERE_DOCUMENT = /<<-?\s?['"]?(\w{1,40})['"]?/;
const TOKEN = /'[^']*'|"(?:\\.|[^"\\])*"|&&|\|\||[;|\n]|\d?>{1,2}(?:&\d)?|&\d?|[^\s"'`<>()&|;]+/g;

/** A word of a command line. */
export interface ShellWord {
  text: string;
  isQuoted: boolean;
  /** Whether output is redirected into it. */
  isTarget: boolean;
}

/** The commands of a line as words. Text fed in behind `<<` is not part of it. */
export function commandsOf(line: string): ShellWord[][] {
  const commands: ShellWord[][] = [[]];
  let isTarget = false;
  const written = withoutHereDocuments(line.slice(0, MAX_COMMAND));
  for (const [token] of written.matchAll(TOKEN)) {
    if (/^(?:&&|\|\||[;|\n])$/.test(token)) commands.push([]);
    else if (/^\d?>/.test(token)) isTarget = !token.includes('&');
    else if (!token.startsWith('&')) {
      const isQuoted = /^['"]/.test(token);
      commands.at(-1)?.push({ text: isQuoted ? token.slice(1, -1) : token, isQuoted, isTarget });
      isTarget = false;
    }
  }
  return commands.filter((words) => words.length > 0);
}

/** Reads each line once; one pattern for whole documents would read to the end again for each that is not closed. */
function withoutHereDocuments(text: string): string {
  const kept: string[] = [];
  let end: string | null = null;
  for (const line of text.split('\n')) {
    if (end === null) {
      end = HERE_DOCUMENT.exec(line)?.[1] ?? null;
      kept.push(line.replace(HERE_DOCUMENT, ''));
      continue;
    }
    const rest = line.trimStart();
    if (!rest.startsWith(end) || /\w/.test(rest.charAt(end.length))) continue;
    kept.push(rest.slice(end.length));
    end = null;
  }
  return kept.join('\n');
}

/** Commands that prepare or trim the output of others. */
const AROUND =
  /^(?:cd|export|set|source|sleep|true|echo|pushd|popd|head|tail|grep|tee|wc|sort|cat -|xargs)(?: |$)/;

/** The commands of a shell's call as texts without redirections, without those that only prepare or trim. */
export function shellParts(call: ToolCall): string[] {
  const lines = textsOf(call).filter(([field]) => isCommandField(field));
  const commands = lines.flatMap(([, line]) => commandsOf(line));
  const texts = commands.map((words) =>
    words
      .filter(({ isTarget }) => !isTarget)
      .map(({ text }) => text)
      .join(' '),
  );
  const main = texts.filter((text) => !AROUND.test(text));
  return main.length > 0 ? main : texts;
}
