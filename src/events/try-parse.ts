import * as z from 'zod';

const NO_NUMBER = /^Cannot convert object to primitive value/;

/**
 * `safeParse` of what comes from outside. Zod compares whatever has a `length` with a number, also where a text or a list
 * should stand: `{"length":{"toString":1}}` can be made none, and what is thrown then is no error of ours.
 */
export function tryParse<T>(
  schema: z.ZodType<T>,
  input: unknown,
  options?: z.core.ParseContext<z.core.$ZodIssue>,
): z.ZodSafeParseResult<T> {
  try {
    return schema.safeParse(input, options);
  } catch (thrown) {
    if (!(thrown instanceof TypeError && NO_NUMBER.test(thrown.message))) throw thrown;
    const message = 'has an object with a "length" where none may be';
    const error = new z.ZodError([{ code: 'custom', path: [], message, input: null }]);
    return { success: false, error: error as z.ZodError<T> };
  }
}
