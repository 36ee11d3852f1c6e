import type { LineCounter } from 'yaml';

/** The value of a JSON or YAML file, and where its parts are. */
export interface DataFile {
  value: unknown;
  /** Line of a field, or, if the field is not written, of the innermost written part around it. */
  lineOf: (path: readonly PropertyKey[]) => number | null;
}

/** A file that is not JSON or YAML. `line` is null if the parser names none. */
export class DataSyntaxError extends Error {
  readonly line: number | null;

  constructor(message: string, line: number | null) {
    super(message);
    this.line = line;
  }
}

/** Throws `DataSyntaxError`. */
export async function readDataFile(text: string, format: 'json' | 'yaml'): Promise<DataFile> {
  // YAML reads JSON as well, and knows where everything is.
  const yaml = await import('yaml');
  const lines = new yaml.LineCounter();
  const document = yaml.parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const value = format === 'json' ? parseJson(text, lines) : null;
  const [problem] = document.errors;
  if (format === 'yaml' && problem)
    throw new DataSyntaxError(problem.message, lines.linePos(problem.pos[0]).line);
  return {
    value: format === 'json' ? value : (document.toJS() as unknown),
    lineOf(path) {
      for (let length = path.length; length > 0; length--) {
        const node = document.getIn(path.slice(0, length), true) as
          | { range?: [number, number, number] }
          | undefined;
        if (node?.range) return lines.linePos(node.range[0]).line;
      }
      return null;
    },
  };
}

function parseJson(text: string, lines: LineCounter): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    const { message } = error as Error;
    const at = positionIn(message, text);
    throw new DataSyntaxError(message, at === null ? null : lines.linePos(at).line);
  }
}

/** Characters that the parser's message quotes before the place. */
const QUOTED_BEFORE = 10;

/** Parsers name the position, quote the text around it, or do neither. */
function positionIn(message: string, text: string): number | null {
  const position = / at position (\d+)/.exec(message)?.[1];
  if (position !== undefined) return Number(position);
  if (message.includes('end of JSON input')) return text.trimEnd().length;
  const quoted = quotedIn(message);
  const start = quoted === null ? -1 : text.indexOf(quoted);
  return start < 0 ? null : start + QUOTED_BEFORE;
}

const BEFORE = ', ..."';
const AFTER = ['" is not valid JSON', '"... is not valid JSON'];

/** The text around the place that a message quotes. */
function quotedIn(message: string): string | null {
  const begin = message.indexOf(BEFORE);
  const end = Math.max(...AFTER.map((words) => message.lastIndexOf(words)));
  return begin < 0 || end <= begin + BEFORE.length ? null : message.slice(begin + BEFORE.length, end);
}
