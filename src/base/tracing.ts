/**
 * Spans of a process, named after the OpenTelemetry conventions for generative AI. The port has no vendor types;
 * `runtime/operators.ts` has the adapter.
 *  T1  Methods never wait and never throw.
 *  T2  Attributes hold ids, names, numbers and codes. They hold text of people and models only if `content` is true.
 */
export interface Tracer {
  /** Whether spans may hold text of people, models and tools. */
  readonly content: boolean;
  /** Begins a span. Without `parent` it is a child of the application's active span, or begins a trace. */
  span(name: string, options: SpanOptions): Span;
}

interface SpanOptions {
  /** `client`: a call to another process. */
  kind: 'internal' | 'client';
  attributes: SpanAttributes;
  parent?: Span | undefined;
}

export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

export interface Span {
  set(attributes: SpanAttributes): void;
  /** Spans begun in `work`, also by instrumented libraries, become children of this one. */
  within<T>(work: () => T): T;
  /** Ends the span, once. `failure`: error code if the work failed. */
  end(failure?: string): void;
}

/** Options of traces. */
export interface TracingOptions {
  /** Whether spans contain prompts, answers, and arguments and results of tools. Default false. */
  content?: boolean;
}
