import type { ToolCall, ToolResultBody } from '../../events/index.ts';
import { capped, withoutEnd } from './cut-text.ts';
import { isShell, shellParts, textsOf } from './shell.ts';

/** A line of output that reports an error, as opposed to code that handles one. */
const ERROR_LINE =
  /^\W{0,4}(?:[\w./@:-]{1,80}[(:\s][^A-Za-z]{0,24})?(?:(?:[A-Za-z]\w{0,60})?(?:Error|Exception)(?: \[\w+\])?:|(?:error|fatal|panic|fatal error)\b(?:\[?[ \w]{0,10}\]?): |(?:ERROR|FATAL|FAILED|Failed)\b(?:\[?[ \w]{0,10}\]?):? |npm (?:error|ERR!) |✖|✗|×|FAIL\b|Uncaught |Unhandled )/;

/** Comments in code, what a shell's tool says about any failure, and what a package manager prints around the error of its script. */
const NO_REPORT =
  /^Command (?:exited with code \d+|aborted)$|^(?:\/\/|\/\*|\*|#|<!--|--\s)|^npm (?:error|ERR!) (?:code|path|workspace|location|command|errno|syscall|A complete log|Lifecycle script|This is probably|\s)/;
const CODE_ENDS = /[,;{(\\]$/;

/** Other words in the output of a failed call. */
const FAILURE_WORD =
  /error|fail|exception|denied|refused|not found|no such|cannot|can't|unable|invalid|timed? ?out|abort|missing|exited with/i;

const MAX_ERROR = 240;
/** The first errors of a compiler are enough. */
const MAX_PER_RESULT = 6;

/** Lines that report an error, of tracebacks, compilers and shells. Code that handles errors does not count. */
export function errorLines(text: string, max = MAX_PER_RESULT): string[] {
  const found = new Set<string>();
  for (const line of text.split('\n')) {
    if (line.length > 4_000 || found.size >= max) continue;
    const clean = line.trim();
    if (ERROR_LINE.test(clean) && !NO_REPORT.test(clean) && !CODE_ENDS.test(clean))
      found.add(capped(clean, MAX_ERROR));
  }
  return [...found];
}

/** At least one line for a failed result. What a successful call has read is no error, unless it begins with one. */
export function errorsOf({ outcome, content }: ToolResultBody, call: ToolCall | null = null): string[] {
  const lines = errorLines(content);
  if (outcome === 'done') {
    const isOutput =
      call === null || !reads(call) || errorLines(content.trimStart().split('\n', 1).join('')).length > 0;
    return isOutput ? lines : [];
  }
  if (lines.length > 0) return lines;
  const all = content.split('\n').map((line) => line.trim());
  const line =
    all.find((each) => FAILURE_WORD.test(each) && !NO_REPORT.test(each)) ??
    all.findLast((each) => each !== '');
  return line === undefined || NO_REPORT.test(line) ? [] : [capped(line, MAX_ERROR)];
}

const READERS =
  /(?:^|[_-])(?:read|view|open|cat|fetch|search|grep|glob|find|list|ls|get|web)|Read|View|Fetch|Search|Grep|Glob|Find|List/;
const READING_COMMAND =
  /^(?:cat|head|tail|less|more|sed -n|grep|rg|ag|find|ls|awk|echo|wc|tree|git (?:diff|show|log|grep|blame|status))\b/;

/** Whether a call shows what is stored, which may be code or an old log. */
function reads(call: ToolCall): boolean {
  if (!isShell(call.name)) return READERS.test(call.name);
  const parts = shellParts(call);
  return parts.length > 0 && parts.every((part) => READING_COMMAND.test(part));
}

const MAX_KEY = 160;
const PATH_NAMES = /path|file|name|uri|url/i;

/**
 * What a call tries to do, equal for each attempt: the first command of a shell line without its redirections, or the
 * tool and its file. Later success of the same settles an error.
 */
export function attemptOf(call: ToolCall): string {
  if (isShell(call.name)) {
    const [command] = shellParts(call);
    if (command !== undefined) return capped(`${call.name} ${command}`, MAX_KEY);
  }
  const texts = textsOf(call);
  const file = texts.find(([field]) => PATH_NAMES.test(field))?.[1];
  return capped(`${call.name} ${file ?? texts.map(([, text]) => text).join(' ')}`, MAX_KEY);
}

/** The attempts that the success of a call settles. */
export function settledBy(call: ToolCall): string[] {
  if (!isShell(call.name)) return [attemptOf(call)];
  return shellParts(call).map((command) => capped(`${call.name} ${command}`, MAX_KEY));
}

const FIXED =
  /(?<![\p{L}])(?:fixed|resolved|solved|works? now|working now|no longer (?:fails?|happens|occurs)|passes|all pass(?:ing)?|behoben|gelöst|funktioniert jetzt|corrigée?s?|résolue?s?|corregid[oa]s?|resuelt[oa]s?|arreglad[oa]s?|corrigid[oa]s?|resolvid[oa]s?|risolt[oa]s?|corrett[oa]|исправлен[оаы]?|исправил[аи]?)(?![\p{L}])|修复了|已修复|解决了|修正しました|直りました|直した/iu;
const NOT_FIXED =
  /(?<![\p{L}])(?:not|n['’]t|never|nicht|pas|no|não|non|не|to be|should be|must be|needs?)(?![\p{L}])/iu;
/** Words that tell one error from another. */
const DISTINCT = /\d|[a-z][A-Z]|_|\.[a-z]{2,4}(?!\w)/;
const BETWEEN_NAMES = /[^\w./@-]+/;

/** Whether a sentence says that the error is fixed, by a word that only this error has. */
export function saysFixed(sentence: string, error: string): boolean {
  if (!FIXED.test(sentence) || NOT_FIXED.test(sentence)) return false;
  const names = error
    .split(BETWEEN_NAMES)
    .filter((name) => DISTINCT.test(name))
    .map(lastPart)
    .filter((name) => name.length > 3);
  return names.some((name) => sentence.includes(name));
}

function lastPart(name: string): string {
  return withoutEnd(name, '.').split('/').at(-1) ?? '';
}
