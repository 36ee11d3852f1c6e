import * as z from 'zod';

/** As browsers send it: no path, no slash at the end, the default port left out. */
const Origin = z
  .string()
  .refine(
    (text) => /^https?:/.test(text) && URL.parse(text)?.origin === text,
    'write an origin as browsers send it, such as "https://app.example" or "http://localhost:5173": no path, no slash at the end, no "*"',
  );

export const CorsSettings = z.strictObject({
  origins: z.array(Origin).min(1).max(100),
  credentials: z.boolean().optional(),
});
/** Which pages of other origins may read and write through the API. They count as its own page. */
export interface CorsSettings {
  /** Origins as browsers send them, such as `https://app.example`; 1 to 100. */
  origins: readonly string[];
  /** Lets browsers send cookies too, for a proxy in front that reads them. The API itself reads none. Default false. */
  credentials?: boolean | undefined;
}
