import { type AttachmentByAddress, type NewAttachment, TroupeError } from '../troupe.ts';

export type Attached = NewAttachment | AttachmentByAddress;

/** What a client says in one request. */
export interface Said {
  content: string;
  attachments: Attached[];
}

/** A call of a tool in an answer that a client tells. */
export interface ToldCall {
  id: string | null;
  name: string;
  /** JSON, as the client has it. */
  args: string;
}

/** A message or an item of a request, in the words of either API. */
export type Told =
  | { role: 'system'; text: string }
  | { role: 'user'; text: string; attachments: Attached[] }
  | {
      role: 'assistant';
      text: string;
      calls: ToldCall[];
      /** The answer of this server that the item repeats, or stands for. */
      answer?: { conversation: string; seq: number } | undefined;
      /** It has no words of its own: they are looked up. */
      isReference?: true | undefined;
    }
  | { role: 'tool'; call: string | null; name: string | null; text: string; attachments: Attached[] };

/** What a request says: what was said before it, and what is new. */
export interface Heard {
  /** Up to the last answer. Empty: there is none. */
  history: readonly Told[];
  /** What the user says since, and results that the client adds. */
  fresh: Said;
  /** Rules of the request alone, for the first message of a conversation. */
  rules: string;
}

/** Throws `event_invalid` for `path` if nothing is said since the last answer. */
export function heardIn(told: readonly Told[], rules: string, path: 'messages' | 'input'): Heard {
  const last = told.findLastIndex(({ role }) => role === 'assistant');
  const history = told.slice(0, last + 1);
  const news = told.slice(last + 1);
  const attachments = news.flatMap((each) => ('attachments' in each ? each.attachments : []));
  const content = joined(news.map((each) => wordsOf(each, history)));
  const isSaid = news.some(({ role }) => role === 'user' || role === 'tool');
  if (isSaid && (content !== '' || attachments.length > 0))
    return { history, fresh: { content, attachments }, rules };
  const one = path === 'messages' ? 'message' : 'item';
  throw invalid(path, `the last ${one} must be a message of the user, or the result of a call`);
}

function wordsOf(told: Told, history: readonly Told[]): string {
  if (told.role !== 'tool') return told.text;
  const name = told.name ?? callNamed(history, told.call)?.name;
  return `Result of ${name ?? 'a call'}: ${told.text}`;
}

function callNamed(history: readonly Told[], id: string | null): ToldCall | undefined {
  const last = history.at(-1);
  return last?.role === 'assistant' ? last.calls.find((call) => call.id === id) : undefined;
}

/** Most attachments of a history that go with the new message, and most characters of them as base64; the newest. */
const MOST_EARLIER = { files: 8, chars: 16 * 1_024 * 1_024 };

/** The message that begins a conversation, and the messages before it as a transcript in the format of OpenAI. */
export interface Begun {
  transcript: object[];
  first: Said;
}

/** Files go with the first message, because a transcript has none; a line names them where they were. */
export function begin({ history, fresh, rules }: Heard): Begun {
  const earlier: Attached[] = [];
  const transcript: object[] = [];
  let waiting = rules;
  for (const [index, told] of history.entries()) {
    const own = 'attachments' in told ? told.attachments : [];
    const text = joined([told.text, ...own.map((file) => `(file ${earlier.push(file)})`)]);
    if (told.role === 'system') waiting = joined([waiting, text]);
    else if (told.role === 'tool') transcript.push(resultOf(told, text));
    else {
      if (told.role === 'user') transcript.push({ role: 'user', content: joined([waiting, text]) });
      else {
        if (waiting !== '') transcript.push({ role: 'user', content: waiting });
        transcript.push(answered(told, index === history.length - 1));
      }
      waiting = '';
    }
  }
  const content = joined([waiting, fresh.content]);
  return { transcript, first: { content, attachments: [...newest(earlier), ...fresh.attachments] } };
}

function resultOf({ call, name }: Told & { role: 'tool' }, content: string): object {
  return { role: 'tool', tool_call_id: call, ...(name !== null && { name }), content };
}

/** With the numbers by which the transcript names them. */
function newest(files: readonly Attached[]): Attached[] {
  const kept: Attached[] = [];
  let chars = 0;
  for (const [number, file] of [...files.entries()].toReversed()) {
    chars += 'data' in file ? file.data.length : 0;
    if (kept.length === MOST_EARLIER.files || chars > MOST_EARLIER.chars) break;
    const name = ['file', number + 1, ...(file.name === undefined ? [] : [file.name])].join(' ');
    kept.unshift({ ...file, name: name.slice(0, 255) });
  }
  return kept;
}

/** The calls of the last answer have no results before the new message, which tells them: they are its words. */
function answered({ text, calls }: Told & { role: 'assistant' }, isLast: boolean): object {
  if (!isLast || calls.length === 0)
    return {
      role: 'assistant',
      content: text,
      ...(calls.length > 0 && {
        tool_calls: calls.map(({ id, name, args }) => ({ id, function: { name, arguments: args } })),
      }),
    };
  const [only] = calls;
  const made = calls.length === 1 && only ? [only.args] : calls.map(({ name, args }) => `${name} ${args}`);
  return { role: 'assistant', content: joined([text, ...made]) };
}

interface Line {
  role: string;
  content: string;
  tool_calls?: { function: { name: string; arguments: string } }[];
}

/** The transcript in the words of the user, for callers who may not write what agents say. */
export function quoted({ transcript, first }: Begun): Said {
  const lines = (transcript as Line[]).map(({ role, content, tool_calls: calls = [] }) => {
    const made = calls.map(({ function: { name, arguments: args } }) => `(calls ${name} ${args})`);
    return `${WHO[role] ?? role}: ${joined([content, ...made])}`;
  });
  const content = joined(['Said before, as this client tells it:', ...lines, 'Now:', first.content]);
  return { ...first, content };
}

const WHO: Record<string, string> = { user: 'User', assistant: 'Assistant', tool: 'Result' };

function joined(texts: readonly string[]): string {
  return texts.filter((text) => text !== '').join('\n\n');
}

/** A file at an address, or within it as a data URL. */
export function fileAt(url: string, name?: string | null): Attached {
  const named = name ? { name } : {};
  const [, mediaType, data] = /^data:([a-z]+\/[\w.+-]+)(?:;[\w=.-]+)*;base64,([^]*)$/i.exec(url) ?? [];
  return mediaType !== undefined && data !== undefined ? { ...named, mediaType, data } : { ...named, url };
}

interface FileGiven {
  file_data?: string | null | undefined;
  file_id?: string | null | undefined;
  filename?: string | null | undefined;
}

/** The bytes of a file part. Clients send a data URL, or bare base64. Throws `event_invalid`. */
export function fileIn({ file_data: data, file_id: id, filename: name }: FileGiven, path: string): Attached {
  if (data) {
    if (data.startsWith('data:')) return fileAt(data, name);
    return { ...(name && { name }), mediaType: typeNamed(name ?? ''), data };
  }
  const why = id ? `there are no uploaded files, and so none with the id "${id}"` : 'a file has no bytes';
  throw invalid(path, `${why}: send it as file_data, a data URL in base64`);
}

const TYPES: Record<string, string> = {
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  json: 'application/json',
};

/** The API knows PDFs alone without a media type. */
function typeNamed(name: string): string {
  const ending = /\.(\w+)$/.exec(name)?.[1]?.toLowerCase();
  return ending === undefined ? 'application/pdf' : (TYPES[ending] ?? 'application/octet-stream');
}

export function invalid(path: string, message: string): TroupeError {
  return new TroupeError('event_invalid', `${path}: ${message}`, { path });
}
