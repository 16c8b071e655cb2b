/** Calls across a worker's boundary: numbered requests, answers, and reports on the way. */

interface Request {
  id: number;
  method: string;
  argument: unknown;
}

type Answer =
  | { id: number; value: unknown }
  | { id: number; report: unknown }
  | { id: number; error: Failure };

/** An error as it crosses the boundary. */
export interface Failure {
  message: string;
  name: string;
  code?: string;
  line?: number;
  column?: number;
  offset?: number;
  length?: number;
}

/** A value whose buffers are handed over instead of copied. */
export class Handed {
  constructor(
    readonly value: unknown,
    readonly transfer: Transferable[],
  ) {}
}

/** Thrown where work was ended on purpose. */
export class Cancelled extends Error {
  constructor() {
    super("cancelled");
    this.name = "Cancelled";
  }
}

export function failure(error: unknown): Failure {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const { code, line, column, offset, length } = error as Error & Failure;
  return { name: error.name, message: error.message, code, line, column, offset, length };
}

interface Pending {
  resolve: (value: never) => void;
  reject: (error: Error) => void;
  report?: (value: never) => void;
}

/** The time in milliseconds that a worker has for its last call. */
const GRACE = 100;

/** A worker, as its owner sees it. Ending it is how work in progress is cancelled: nothing else stops a kernel. */
export class Remote {
  readonly #pending = new Map<number, Pending>();
  #next = 0;
  #dead: Error | undefined;

  constructor(private readonly worker: Worker) {
    worker.onmessage = ({ data }: MessageEvent<Answer>) => this.#take(data);
    worker.onerror = (event) => {
      // Without a message it never began: nobody will answer any more.
      if (!event.message) this.#dead = new Error("Failed to fetch the worker");
      this.#fail(this.#dead ?? new Error(event.message));
    };
  }

  call<T>(method: string, argument?: unknown, options: { transfer?: Transferable[]; report?: (value: never) => void } = {}): Promise<T> {
    if (this.#dead) return Promise.reject(this.#dead);
    const id = this.#next++;
    return new Promise<T>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject, ...(options.report && { report: options.report }) });
      this.worker.postMessage({ id, method, argument } satisfies Request, options.transfer ?? []);
    });
  }

  end(): void {
    this.worker.terminate();
    this.#fail(new Cancelled());
  }

  /** Ends it after a last call, which it may have no time for. */
  leave(method: string): void {
    void this.call(method).catch(() => undefined);
    this.#fail(new Cancelled());
    this.#dead = new Cancelled();
    setTimeout(() => this.worker.terminate(), GRACE);
  }

  #take(answer: Answer): void {
    const pending = this.#pending.get(answer.id);
    if (!pending) return;
    if ("report" in answer) {
      pending.report?.(answer.report as never);
      return;
    }
    this.#pending.delete(answer.id);
    if ("error" in answer) pending.reject(Object.assign(new Error(answer.error.message), answer.error));
    else pending.resolve(answer.value as never);
  }

  #fail(error: Error): void {
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const one of pending) one.reject(error);
  }
}

/** A worker's side: answers calls by name. */
export function serve(methods: Record<string, (argument: never, report: (value: unknown) => void) => unknown>): void {
  self.onmessage = async ({ data }: MessageEvent<Request>) => {
    const { id, method, argument } = data;
    const post = (answer: Answer, transfer: Transferable[] = []) => self.postMessage(answer, { transfer });
    try {
      const run = methods[method];
      if (!run) throw new Error(`the worker has no method ${method}`);
      const value = await run(argument as never, (report) => (report instanceof Handed ? post({ id, report: report.value }, report.transfer) : post({ id, report })));
      if (value instanceof Handed) post({ id, value: value.value }, value.transfer);
      else post({ id, value });
    } catch (error) {
      post({ id, error: failure(error) });
    }
  };
}
