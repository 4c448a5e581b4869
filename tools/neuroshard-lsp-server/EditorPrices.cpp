//===- EditorPrices.cpp - Prices of plans in an editor --------------------===//

#include "EditorPrices.h"

#include "HoverPrices.h"

#include "neuroshard/CostModel/Registry.h"
#include "neuroshard/Dialect/PlanListener.h"
#include "neuroshard/Transforms/PlanPrices.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/Threading.h"

#include <optional>

using namespace mlir;
using namespace neuroshard;

namespace {

/// The first error that this thread emits while it lives, which is not shown;
/// diagnostics of other threads are.
class FirstError {
public:
  explicit FirstError(MLIRContext *context)
      : thread(llvm::get_threadid()),
        handler(context, [this](mlir::Diagnostic &diagnostic) {
          if (llvm::get_threadid() != thread)
            return failure();
          if (!error && diagnostic.getSeverity() == DiagnosticSeverity::Error)
            error.emplace(diagnostic.getLocation(), diagnostic.str());
          return success();
        }) {}

  std::optional<std::pair<Location, std::string>> error;

private:
  uint64_t thread;
  ScopedDiagnosticHandler handler;
};

/// Whether all ops of the module find the symbols that they use. The verifier
/// is about to say what they do not find.
bool findsSymbols(ModuleOp module) {
  FirstError silent(module.getContext());
  SymbolTableCollection symbols;
  return !module
              .walk([&](SymbolUserOpInterface user) {
                return failed(user.verifySymbolUses(symbols))
                           ? WalkResult::interrupt()
                           : WalkResult::advance();
              })
              .wasInterrupted();
}

/// A plan is priced with the lookups that it is for; modules of later levels
/// have none.
bool hasLookups(ModuleOp module) {
  return module.walk([](ir::LookupOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

class EditorPrices : public ir::PlanListener {
public:
  EditorPrices(Dialect *dialect, bool inHovers)
      : PlanListener(dialect), inHovers(inHovers) {}

  void planVerified(ir::PlanOp plan) const override {
    // findsSymbols() verifies the plan again.
    static thread_local bool isRunning = false;
    auto module = plan->getParentOfType<ModuleOp>();
    if (isRunning || !module || !hasLookups(module))
      return;
    isRunning = true;
    llvm::scope_exit done([] { isRunning = false; });
    if (findsSymbols(module))
      price(plan);
  }

private:
  void price(ir::PlanOp plan) const {
    FailureOr<std::vector<Price>> prices;
    std::optional<std::pair<Location, std::string>> error;
    {
      FirstError silent(plan.getContext());
      prices = pricePlan(plan, kDefaultCostModel);
      error = std::move(silent.error);
    }
    if (succeeded(prices))
      emit(*prices);
    else if (error)
      emitRemark(error->first) << "no price: " << error->second;
  }

  void emit(llvm::MutableArrayRef<Price> prices) const {
    if (!inHovers)
      return emitPrices(prices);
    emitPrices(prices.take_front());
    for (Price &price : prices) {
      auto symbol = dyn_cast<SymbolOpInterface>(price.op);
      price.text = forHover(symbol ? symbol.getName() : "", price.text);
    }
    emitPrices(prices);
  }

  bool inHovers;
};

class PricesExtension
    : public DialectExtension<PricesExtension, ir::NeuroShardDialect> {
public:
  explicit PricesExtension(bool inHovers) : inHovers(inHovers) {}

  void apply(MLIRContext *, ir::NeuroShardDialect *dialect) const final {
    dialect->addInterface(std::make_unique<EditorPrices>(dialect, inHovers));
  }

private:
  bool inHovers;
};

} // namespace

void neuroshard::addEditorPrices(DialectRegistry &registry, bool inHovers) {
  registry.addExtension(TypeID::get<PricesExtension>(),
                        std::make_unique<PricesExtension>(inHovers));
}
