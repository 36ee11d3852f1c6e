import { TroupeError } from '../../base/errors.ts';

/** Errors of the AI SDK itself, by their names. Errors of calls have a status instead. */
const STATUS: Readonly<Record<string, number>> = {
  AI_LoadAPIKeyError: 401,
  AI_LoadSettingError: 401,
  AI_NoSuchModelError: 404,
  AI_UnsupportedFunctionalityError: 400,
  AI_InvalidPromptError: 400,
  AI_InvalidArgumentError: 400,
};
const UNREADABLE = ['AI_JSONParseError', 'AI_TypeValidationError', 'AI_InvalidResponseDataError'];

type Fields = Record<string, unknown>;

/**
 * An error of the AI SDK in the form of a vendor's: `status`, `headers`, and the answer's body as `error`. It is read by its
 * shape: a program may have several versions of the AI SDK's packages.
 */
export function vendorFailure(thrown: unknown): unknown {
  if (thrown instanceof TroupeError || !isRecord(thrown)) return thrown;
  const { statusCode, responseHeaders, data, cause } = thrown;
  const name = String(thrown['name']);
  if (thrown instanceof Error && !name.startsWith('AI_')) return thrown;
  const said = UNREADABLE.includes(name)
    ? errorIn(thrown['value'])
    : (bodyOf(thrown) ?? data ?? withoutMessage(thrown));
  if (said === undefined)
    return new TroupeError('provider_invalid_reply', messageOf(thrown), {}, { cause: thrown });
  // A successful answer that could not be read to its end has the status 200.
  const status = typeof statusCode === 'number' && statusCode >= 400 ? statusCode : STATUS[name];
  return Object.assign(new Error(messageOf(thrown), { cause }), {
    ...(status !== undefined && { status }),
    ...(isRecord(responseHeaders) && { headers: new Headers(responseHeaders as Record<string, string>) }),
    error: said,
  });
}

/** Errors within a stream are plain objects, and hold codes of their own. */
function withoutMessage(thrown: Fields): Fields {
  return thrown instanceof Error ? {} : thrown;
}

/** A vendor's report of an error, in a form that the AI SDK does not know. */
function errorIn(value: unknown): Fields | undefined {
  return isRecord(value) && isRecord(value['error']) ? value : undefined;
}

function bodyOf({ responseBody }: Fields): unknown {
  if (typeof responseBody !== 'string' || !/^\s*[{[]/.test(responseBody)) return undefined;
  try {
    return JSON.parse(responseBody);
  } catch {
    return undefined; // The text itself is the message.
  }
}

/** A body that is no JSON says more than the name of its status. */
function messageOf(error: Fields): string {
  const { message, responseBody } = error;
  if (typeof responseBody === 'string' && responseBody !== '' && bodyOf(error) === undefined)
    return responseBody;
  return typeof message === 'string' && message !== '' ? message : JSON.stringify(error);
}

function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}
