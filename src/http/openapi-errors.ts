/** The one shape of every error. */
export const ERROR = {
  type: 'object',
  properties: {
    error: {
      type: 'object',
      properties: { code: { type: 'string' }, message: { type: 'string' }, data: { type: 'object' } },
      required: ['code', 'message', 'data'],
    },
  },
  required: ['error'],
};

const MEANINGS = {
  400: 'What was sent does not fit; `data.problems` has each problem with its path',
  401: 'No credential, or none that is known',
  403: 'The caller may not do this, or the page or name it comes by is not trusted',
  404: 'There is none of this id, or none that the caller was granted',
  409: 'It does not go with the present state, or the id is taken by another payload',
  413: 'The body is too large',
  415: 'The body has another content type than those that are taken',
  429: 'Too much at once of one caller, author or tenant; `retry-after` says when to come again',
  500: 'A fault in here; the server has reported it to its operator',
  503: 'A service is away, or the process is ending; come again',
} as const;
export type ErrorStatus = keyof typeof MEANINGS;

/** What `components.responses` has: one for each status, whatever the operation. */
export const ERROR_RESPONSES = Object.fromEntries(
  Object.entries(MEANINGS).map(([status, description]) => [
    `Error${status}`,
    { description, content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } },
  ]),
);

interface Facts {
  method: string;
  isPublic: boolean;
  hasPathParameters: boolean;
  hasQuery: boolean;
  hasBody: boolean;
  /** What this operation alone can answer. */
  more: readonly ErrorStatus[];
}

/** The errors that an operation can answer with, by what it takes. */
export function errorResponsesOf(facts: Facts): Record<string, object> {
  const { method, isPublic, hasPathParameters, hasQuery, hasBody, more } = facts;
  if (isPublic) return {};
  const statuses: ErrorStatus[] = [401, 403, 429, 500, 503, ...more];
  if (hasQuery || hasBody || hasPathParameters) statuses.push(400);
  if (hasPathParameters) statuses.push(404);
  if (hasBody) statuses.push(404, 413, 415);
  if (method !== 'GET') statuses.push(409);
  const refs = statuses.map((status) => [status, { $ref: `#/components/responses/Error${status}` }]);
  return Object.fromEntries(refs) as Record<string, object>;
}
